package config

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

func noEnv(string) (string, bool) { return "", false }
func noFile(p string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
}

func someVariables() Variables {
	return Variables{
		Env:  func(name string) (string, bool) { value, ok := environment[name]; return value, ok },
		Home: "/home/ada", Workspace: "/src/app", GOOS: "linux",
		ReadFile: func(path string) ([]byte, error) {
			if path == "/home/ada/key" || path == "/src/app/key" {
				return []byte("content of " + path + "\r\n"), nil
			}
			if path == "/big" {
				return make([]byte, maxValue+1), nil
			}
			return noFile(path)
		},
	}
}

func TestVariables(t *testing.T) {
	for _, c := range []struct {
		text, want string
		missing    []string
	}{
		{text: "", want: ""},
		{text: "plain $ text % $", want: "plain $ text % $"},
		{text: "${TOKEN}", want: "t0ken-value"},
		{text: "<${TOKEN}${REGION}>", want: "<t0ken-valueeu-central>"},
		{text: "${env:TOKEN} ${env://TOKEN}", want: "t0ken-value t0ken-value"},
		{text: "${NOT:-a b} ${env:NOT:-c} ${env://NOT:-d} ${NOT:-}", want: "a b c d "},
		{text: "${NOT:-${ALSO_NOT:-${TOKEN}}}", want: "t0ken-value"},
		{text: "${BLANK}", want: ""},
		{text: "${BLANK:-default}", want: "default"},
		{text: "${TOKEN:-unused}", want: "t0ken-value"},
		{text: "${userHome}${/}x${pathSeparator}${workspaceFolder} ${workspaceFolderBasename}", want: "/home/ada/x//src/app app"},
		{text: "${file:~/key}|${file:key}", want: "content of /home/ada/key|content of /src/app/key"},
		{text: "$${TOKEN} $$ $TOKEN %TOKEN%", want: "${TOKEN} $$ $TOKEN %TOKEN%"},
		{text: "a${NOT}b", want: "ab", missing: []string{"NOT"}},
		{text: "${env:NOT}${env://ALSO}", want: "", missing: []string{"NOT", "ALSO"}},
		{text: "${file:/none}", want: "", missing: []string{"file:/none"}},
		{text: "${file:/big}", want: "", missing: []string{"file:/big"}},
		{text: "${input:x}", want: "", missing: []string{"input:x"}},
		{text: "${config:x}${}${command:y}${VAR%suffix}${env:}", want: "", missing: []string{"config:x", "", "command:y", "VAR%suffix", "env:"}},
		{text: "open ${TOKEN", want: "open ", missing: []string{"${"}},
		{text: strings.Repeat("${N:-", 20) + strings.Repeat("}", 20), want: "", missing: []string{"${"}},
	} {
		got, missing := someVariables().Expand(c.text)
		if got != c.want || !reflect.DeepEqual(missing, c.missing) {
			t.Errorf("%q: got %q, missing %q; want %q, %q", c.text, got, missing, c.want, c.missing)
		}
	}
}

func TestVariablesOfASystem(t *testing.T) {
	v := someVariables()
	v.GOOS, v.Workspace = "windows", ""
	if got, _ := v.Expand("${/}"); got != `\` {
		t.Errorf("the separator is %q", got)
	}
	if got, missing := v.Expand("${workspaceFolder:-${/}}"); got != `\` || missing != nil {
		t.Errorf("%q, missing %q", got, missing)
	}
	if _, missing := v.Expand("${workspaceFolder}${workspaceFolderBasename}"); len(missing) != 2 {
		t.Errorf("missing without a project: %q", missing)
	}
	for system, want := range map[string]string{"windows": "t0ken-value t0ken-value 100%", "linux": "t0ken-value %TOKEN% 100%"} {
		v.GOOS = system
		x := expansion{v: v.withDefaults(), bare: true}
		if got := x.expandText("$TOKEN %TOKEN% 100%"); got != want {
			t.Errorf("%s: got %q, want %q", system, got, want)
		}
	}
}

func TestInputs(t *testing.T) {
	text := `{"inputs": [{"id": "a", "password": true, "description": "A"}, {"id": "b", "default": "bee"}, {"id": "c", "options": ["x", {"value": "y"}]}],
		"mcpServers": {"s": {"command": "x", "args": ["${input:b}", "${input:c}"], "env": {"A": "${input:a}"}}}}`
	s := loadOnlyServer(t, text)
	v := someVariables()
	var asked []Input
	v.Input = func(in Input) (string, bool) {
		asked = append(asked, in)
		return "answer to " + in.ID, in.ID != "b"
	}
	d, problems := s.Resolve(v)
	if len(problems) > 0 || !reflect.DeepEqual(d.Args, []string{"bee", "answer to c"}) || d.Env["A"] != "answer to a" {
		t.Fatalf("%+v %v", d, problems)
	}
	if !reflect.DeepEqual(d.Secrets, []string{"answer to a"}) {
		t.Errorf("secrets %q", d.Secrets)
	}
	if len(asked) != 3 || !reflect.DeepEqual(asked[1].Options, []string{"x", "y"}) || !asked[0].HasDefault || asked[2].Description != "A" {
		t.Errorf("asked %+v", asked)
	}
}

// No expansion panics or takes long, and a text without $ stays as it is.
func FuzzVariables(f *testing.F) {
	for _, seed := range []string{"", "${A}", "${A:-${B:-${C}}}", "$${A}", "${", "${}", "${env:}", "${env://:-x}", "${input:a}${file:b}", "$A%B%", "${${A}}", "\\${A}", "${A:-}}"} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, bare bool) {
		v := someVariables()
		v.Home, v.GOOS = "/home", "windows"
		x := expansion{v: v.withDefaults(), bare: bare}
		got := x.expandText(text)
		if !strings.ContainsAny(text, "$%") && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if again := (&expansion{v: v.withDefaults(), bare: bare}).expandText(text); again != got {
			t.Errorf("%q became %q, and then %q", text, got, again)
		}
		lines, problems := parseEnvFile("x", text)
		for _, l := range lines {
			if l.name == "" || l.at.Line < 1 || l.at.Line > strings.Count(text, "\n")+1 {
				t.Errorf("line %+v of %q", l, text)
			}
		}
		for _, p := range problems {
			if p.Line < 1 || p.Line > strings.Count(text, "\n")+1 {
				t.Errorf("%v is outside %q", p, text)
			}
		}
	})
}

func TestEnvFile(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"A=b", "A=b@1"},
		{"\ufeffA=b\r\nexport  C = d e  \n", "A=b@1 C=d e@2"},
		{"# c\n\nA= # nothing\nB=x # y\nC=x#y\n", "A=@3 B=x@4 C=x#y@5"},
		{`A="x # y" # z` + "\n" + `B='\n'` + "\n" + `C="a\n\"b\\"`, "A=x # y@1 B=\\n@2 C=a\n\"b\\@3"},
		{"A=\"one\ntwo\"\nB=c\nD='x\n\ny' \nE=f", "A=one\ntwo@1 B=c@3 D=x\n\ny@4 E=f@7"},
		{"A=b=c\nB=$C ${D}", "A=b=c@1 B=$C ${D}@2"},
		{"nonsense\nA=b", "x:1:1: warning: A=b@2"},
		{"=x\nA B=c\nA=\"open\nB=c", "x:1:1: warning: x:2:1: warning: x:3:1: error: B=c@4"},
		{"A=\"b\" c\nB='c'd", "x:1:1: error: x:2:1: error:"},
	} {
		lines, problems := parseEnvFile("x", c.text)
		var got []string
		for _, p := range problems {
			got = append(got, p.Position.String()+": "+p.Severity.String()+":")
		}
		for _, l := range lines {
			got = append(got, l.name+"="+l.value+"@"+strings.Split(l.at.String(), ":")[1])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %q, want %q", c.text, strings.Join(got, " "), c.want)
		}
	}
}

// loadOnlyServer reads the only server of a dowel.json.
func loadOnlyServer(t *testing.T, text string) *Server {
	t.Helper()
	c := fileContents{File: File{Path: "/src/app/dowel.json", Scope: Project}}.parseText([]byte(text), lookupDialect(Own), Options{GOOS: "linux"})
	if len(c.servers) != 1 || hasErrors(c.problems) {
		t.Fatalf("%d servers, %v", len(c.servers), c.problems)
	}
	return c.servers[0]
}
