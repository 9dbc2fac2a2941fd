package config

import (
	"fmt"
	"strings"
	"testing"
)

// dumpTree formats a tree in one line, with the position of each value.
func dumpTree(n *node) string {
	if n == nil {
		return "nothing"
	}
	at := fmt.Sprintf("@%d:%d", n.at.Line, n.at.Column)
	switch n.kind {
	case objectNode:
		var all []string
		for _, m := range n.members {
			all = append(all, fmt.Sprintf("%s@%d:%d=%s", m.key.text, m.key.at.Line, m.key.at.Column, dumpTree(m.value)))
		}
		return "{" + strings.Join(all, " ") + "}" + at
	case arrayNode:
		var all []string
		for _, item := range n.items {
			all = append(all, dumpTree(item))
		}
		return "[" + strings.Join(all, " ") + "]" + at
	case stringNode:
		return fmt.Sprintf("%q%s", n.text, at)
	case nullNode:
		return "null" + at
	}
	return n.text + at
}

func TestTree(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a.json", `{"ä": "é", "b": [1, true, null,], /* x */ "c": {} } // end`,
			`{ä@1:2="é"@1:7 b@1:12=[1@1:18 true@1:21 null@1:27]@1:17 c@1:43={}@1:48}@1:1`},
		{"a.json", "\ufeff{\r\n  // [{\r\n  \"a\\u00e9\": \"x\\ny\"\r\n}", `{aé@3:3="x\ny"@3:14}@1:1`},
		{"a.json", " \n", `{}@1:1`},
		{"a.jsonc", "null", `{}@1:1`},
		{"none", `"just text"`, `"just text"@1:1`},
		{"a.yaml", "# c\r\na: \"ä\"\r\nb:\r\n  - é: 1\r\n    c: |\r\n      x\r\n      y\r\n  - &q plain\r\n  - *q\r\n  - !!str 12\r\n  - ~\r\n",
			`{a@2:1="ä"@2:4 b@3:1=[{é@4:5=1@4:8 c@5:5="x\ny\n"@5:8}@4:5 "plain"@8:8 "plain"@8:8 "12"@10:11 null@11:5]@4:3}@2:1`},
		{"a.yml", "base: &b {x: 1, y: 2}\nall:\n  <<: [*b, {z: 3}]\n  y: 9\n? k\n: .inf\nn: .nan\nt: !x yes\n",
			`{base@1:1={x@1:11=1@1:14 y@1:17=2@1:20}@1:10 all@2:1={y@4:3=9@4:6 x@1:11=1@1:14 z@3:13=3@3:16}@3:3 k@5:3=+Inf@6:3 n@7:1=NaN@7:4 t@8:1="yes"@8:7}@1:1`},
		{"a.yaml", "", `{}@1:1`},
		{"a.yaml", "# nothing\n", `{}@1:1`},
		{"a.yaml", "true: 1\n2: 3\n~: 4\n", `{true@1:1=1@1:7 2@2:1=3@2:4 ~@3:1=4@3:4}@1:1`},
		{"a.toml", "a = 1_000\nb.c = 'x'\n[t.\"u v\"]\nf = [1.5, {x = true, y.z = 1979-05-27}]\n[[l]]\nk = \"\"\"\nü\"\"\"\n[[l]]\n[l.m]\n",
			`{a@1:1=1_000@1:5 b@2:1={c@2:3="x"@2:7}@2:1 t@3:2={u v@3:4={f@4:1=[1.5@4:6 {x@4:12=true@4:16 y@4:22={z@4:24="1979-05-27"@4:28}@4:22}@4:11]@4:1}@3:4}@3:2 l@5:3=[{k@6:1="ü"@6:5}@5:3 {m@9:4={}@9:4}@8:3]@5:3}@1:1`},
		{"a.toml", "", `{}@1:1`},
	} {
		root, problems := parseFile(c.path, []byte(c.text))
		if got := dumpTree(root); got != c.want || len(problems) > 0 {
			t.Errorf("%s %q:\n got %s %v\nwant %s", c.path, c.text, got, problems, c.want)
		}
	}
}

func TestTreeProblems(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1)
	for _, c := range []struct{ path, text, want string }{
		{"a.json", "{\n  \"a\": 1\n  \"b\": 2\n}", `a.json:2:9: error: a comma is missing here, or a bracket`},
		{"a.json", `{"a": 1`, `a.json:1:8: error: the file ends too early, a quote or a bracket is not closed`},
		{"a.json", "{'a': 1}", `a.json:1:2: error: JSON has no single quotes, write "…"`},
		{"a.json", "{\"ä\": 'a'}", `a.json:1:7: error: JSON has no single quotes, write "…"`},
		{"a.json", `{"path": "C:\dir"}`, `a.json:1:10: error: this string is not closed in its line, or a \ in it is not part of an escape`},
		{"a.json", `{"a": nope}`, `a.json:1:7: error: nope is not JSON: write keys and text in double quotes`},
		{"a.json", `{} {}`, `a.json:1:4: error: the file continues after its last bracket, with '{'`},
		{"a.json", `{"a": 1 /* never closed`, `a.json:1:24: error: the file ends too early`},
		{"a.json", deep, `a.json:1:501: error: lists and objects are nested more than 500 deep here`},
		{"a.json", "{\"a\": 1,\n\"a\": 2}", `a.json:2:1: error: the key "a" occurs twice: the first one is in line 1; this one counts, so remove one of them`},
		{"a.json", "{\"\xff\": 1}", `a.json:1:3: error: a byte here is not UTF-8: save the file as UTF-8`},
		{"a.json", "\xff\xfe{\x00}\x00", `a.json:1:1: error: the file is UTF-16: save it as UTF-8`},
		{"a.json", strings.Repeat(" ", maxFile+1), `a.json:1:1: error: the file has 16 MiB: a configuration of more than 16 MiB is not read`},
		{"a.yaml", strings.Repeat("\n", maxYAML+1), `a.yaml:1:1: error: the file has 256 KiB: a YAML file of more than 256 KiB is not read`},
		{"a.yaml", "a: b: c\n", `a.yaml:1:4: error: this is not YAML: mapping value is not allowed in this context`},
		{"a.yaml", "a:\r\n  - b\r\n c: d\r\n", `a.yaml:3:2: error: this is not YAML: `},
		{"a.yaml", "a: *x\n", `a.yaml:1:4: error: this alias refers to an unknown anchor: &x`},
		{"a.yaml", "a: &a [*a]\n", `a.yaml:1:8: error: this alias refers to an unknown anchor: &a`},
		{"a.yaml", "a: 1\nb: 1\na: 2\n", `a.yaml:3:1: error: the key "a" occurs twice: the first one is in line 1; `},
		{"a.yaml", "<<: 1\n", `a.yaml:1:5: error: <<: takes an object, or a list of objects, not a number`},
		{"a.yaml", "a: &x [1]\n*x : b\n", `a.yaml:1:7: error: a key must be a string, not a list`},
		{"a.yaml", "a: 1\n---\nb: 2\n", `a.yaml:3:`},
		{"a.yaml", deep, `a.yaml:1:501: error: lists and objects are nested more than 500 deep here`},
		{"a.yaml", strings.Repeat("- ", maxDepth+1), `a.yaml:1:1001: error: lists and objects are nested more than 500 deep here`},
		{"a.toml", "[a\nb = 1", `a.toml:1:3: error: this is not TOML: expected ']' to close table name`},
		{"a.toml", "a = npx\n", `a.toml:1:5: error: this is not TOML: a value that is a string must be in quotes`},
		{"a.toml", "a = 1\na = 2\n", `a.toml:2:1: error: the key "a" occurs twice: `},
		{"a.toml", "[a]\n[a]\n", `a.toml:2:2: error: the key "a" occurs twice: `},
		{"a.toml", "[[a]]\n[a]\n", `a.toml:2:2: error: the key "a" occurs twice: `},
		{"a.toml", "a = []\n[[a]]\n", `a.toml:2:3: error: the key "a" occurs twice: `},
		{"a.toml", "a = 1\n[a.b]\n", `a.toml:2:2: error: a is not a table here: line 1 makes it a number`},
		{"a.toml", "a = [" + deep + strings.Repeat("]", maxDepth+2), `a.toml:1:1: error: lists and tables are nested more than 500 deep here`},
		{"a.toml", strings.Repeat("a.", maxDepth+1) + "a = 1", `a.toml:1:1: error: this key has more than 500 parts`},
	} {
		_, problems := parseFile(c.path, []byte(c.text))
		if len(problems) == 0 || !strings.HasPrefix(problems[0].String(), c.want) {
			t.Errorf("%s %.60q:\n got %v\nwant %s", c.path, c.text, problems, c.want)
		}
	}
}

func TestLargeObjectsHaveNoDuplicates(t *testing.T) {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "k%d = 1\n", i)
	}
	root, problems := parseFile("a.toml", []byte(text.String()+"k39 = 2\nk40 = 3\nk40 = 4\n"))
	if len(root.members) != 41 || len(problems) != 2 || root.member("k40").text != "4" {
		t.Errorf("%d members, %v", len(root.members), problems)
	}
}

// No parser panics, and all positions lie within the text.
func FuzzTree(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"], "timeout": 1e400}}} // c`, "\ufeff{\"a\": [1,],}", `{"a" /* ] */: "\ud800"}`, "[[[", `{"a":1,"a":2}`, "{\"inputs\": [{\"id\": \"a\"}], \"servers\": {\"a\": 1}}",
		"a: &a [b, *a]\n<<: {c: d}\n? - e\n: !!str |\n  f\n", "- - - a\n", "a:\r\n\tb\r\n", "mcpServers:\n  - name: x\n    command: [a, b]\n", "%YAML 1.2\n---\n!!map {a: &b !c ~, ? d}", "a: >-\n  b\n\n  c\n#", "'a\n b': \"c\\\n d\"",
		"[a.b]\nc = 1\n[[d]]\ne = {f = [1, '''\n'''], g.h = 1979-05-27T07:32:00Z}\n", "a.b = 1\na = 2", "[a]\n[a.b]\n[a]", "a=0x_", "[mcp_servers.x]\ncommand='y'\nstartup_timeout_sec=inf\n",
	} {
		for format := range 3 {
			f.Add([]byte(seed), uint8(format))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, format uint8) {
		path := []string{"a.json", "a.yaml", "a.toml"}[format%3]
		root, problems := parseFile(path, text)
		if root == nil && !hasErrors(problems) {
			t.Error("there is neither a tree nor an error")
		}
		lines := strings.Count(string(text), "\n") + 1
		inside := func(at Position) {
			if at.Line < 1 || at.Line > lines || at.Column < 1 || at.Column > len(text)+1 {
				t.Errorf("%v is outside the text of %d lines", at, lines)
			}
		}
		for _, p := range problems {
			inside(p.Position)
		}
		eachNode(root, 0, func(n *node) {
			inside(n.at)
			if n.start < 0 || n.start > len(text) {
				t.Errorf("offset %d is outside", n.start)
			}
		})
		c := fileContents{File: File{Path: path, Scope: User}}.parseText(text, nil, Options{GOOS: "linux"})
		for _, s := range c.servers {
			s.TrustFacts(noVariables)
			d, _ := s.resolveAll(Variables{Env: noEnv, Home: "/home", ReadFile: noFile})
			d.Fingerprint()
		}
	})
}

func eachNode(n *node, depth int, f func(*node)) {
	if n == nil || depth > 4 { // aliases make of a YAML tree something that takes forever to walk
		return
	}
	f(n)
	for _, item := range n.items {
		eachNode(item, depth+1, f)
	}
	for _, m := range n.members {
		f(m.key)
		eachNode(m.value, depth+1, f)
	}
}
