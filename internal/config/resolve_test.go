package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func resolveEntry(t *testing.T, entry string) *Definition {
	t.Helper()
	d, problems := loadOnlyServer(t, `{"mcpServers": {"s": `+entry+`}}`).Resolve(someVariables())
	if d == nil {
		t.Fatalf("%s: %v", entry, problems)
	}
	return d
}

func TestSecrets(t *testing.T) {
	for _, c := range []struct {
		entry string
		want  []string
	}{
		{`{"command": "x", "env": {"A": "${TOKEN}", "B": "literal", "MY_API_KEY": "literal-key"}}`, []string{"literal-key", "t0ken-value"}},
		{`{"command": "${TOKEN}", "cwd": "/${REGION}"}`, nil},
		{`{"command": "x", "args": ["${REGION}", "--token", "abcd", "--api-key=efgh", "--max-tokens=9000", "--token=", "-k"]}`, []string{"abcd", "efgh", "eu-central"}},
		{`{"url": "https://u:pass@h/mcp?api_key=a%2Bb&x=y"}`, []string{"a+b", "pass"}},
		{`{"url": "https://h/mcp", "headers": {"Authorization": "Bearer abc.def", "X-Api-Key": "${API_KEY}", "Accept": "text/plain"}}`, []string{"abc.def", "k3y-value"}},
		{`{"url": "https://h/mcp", "oauth": {"clientId": "id", "clientSecret": "hush"}, "headersHelper": "print ${TOKEN}"}`, []string{"hush", "t0ken-value"}},
		{`{"command": "x", "env": {"HOME_COPY": "${userHome}", "SECRET": "${BLANK}"}}`, nil},
	} {
		if got := resolveEntry(t, c.entry).Secrets; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.entry, got, c.want)
		}
	}
}

func TestMask(t *testing.T) {
	d := resolveEntry(t, `{"url": "https://h/mcp?key=longer-secret+more", "headers": {"Authorization": "Bearer longer-secret", "X-Key": "a\"b+c", "X-Token": "1", "X-Secret": "true", "X-Password": "8080"}}`)
	for text, want := range map[string]string{
		"":                                  "",
		"nothing of 8080, true and 1":       "nothing of 8080, true and 1",
		"longer-secret, longer-secret more": "****, ****",
		`{"k": "a\"b+c"}`:                   `{"k": "****"}`,
		"a%22b%2Bc":                         "****",
	} {
		if got := d.Mask(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestFingerprint(t *testing.T) {
	const same = `{"command": "x", "args": ["a"], "env": {"A": "b"}}`
	base := resolveEntry(t, same).Fingerprint()
	for _, entry := range []string{
		same,
		`{"env": {"A": "${NOT:-b}"}, "args": ["a"], "command": "x", "type": "stdio", "sharing": "shared"}`,
		`{"command": ["x", "a"], "environment": {"A": "b"}, "disabled": true, "required": true, "timeout": "1s", "startTimeout": "2s", "idleTimeout": "3s", "tools": {"hide": ["x"]},
			"alwaysAllow": ["*"], "lazy": true, "idleStop": "1m", "watchPaths": ["x"], "revision": "auto"}`,
	} {
		if got := resolveEntry(t, entry).Fingerprint(); got != base {
			t.Errorf("%s would restart", entry)
		}
	}
	for _, entry := range []string{
		`{"command": "y", "args": ["a"], "env": {"A": "b"}}`, `{"command": "x", "args": [], "env": {"A": "b"}}`, `{"command": "x", "args": ["a"], "env": {"A": "c"}}`,
		`{"command": "x", "args": ["a"], "env": {"A": "b"}, "cwd": "y"}`, `{"command": "x", "args": ["a"], "env": {"A": "b"}, "sharing": "client"}`,
		`{"command": "x", "args": ["a"], "env": {"A": "b"}, "serialize": true}`, `{"command": "x", "args": ["a"], "env": {"A": "b"}, "keepDetached": true}`, `{"command": "x", "args": ["a"], "env": {"A": "b"}, "revision": "legacy"}`,
		`{"url": "https://h/mcp"}`, `{"url": "https://h/mcp", "headers": {"A": "b"}}`, `{"url": "https://h/mcp", "headersHelper": "x"}`, `{"url": "https://h/mcp", "type": "sse"}`,
		`{"url": "https://h/mcp", "oauth": {"clientId": "x"}}`,
	} {
		if resolveEntry(t, entry).Fingerprint() == base {
			t.Errorf("%s would not restart", entry)
		}
	}
}

// Values that are invalid after expansion are errors of the server, and no message shows a value.
func TestNeedsConfiguration(t *testing.T) {
	v := someVariables()
	v.Env = func(name string) (string, bool) {
		value, ok := map[string]string{"EMPTY": "", "LINES": "hush\nX-Evil: 1", "NUL": "hush\x00", "WORD": "hush"}[name]
		return value, ok
	}
	for entry, want := range map[string]string{
		`{"command": "${EMPTY}"}`:                                    "command is empty after its variables are expanded",
		`{"command": "x", "args": ["${NUL}"]}`:                       "args[0] holds a NUL byte",
		`{"command": "x", "env": {"A": "${NUL}"}}`:                   "env.A holds a NUL byte",
		`{"url": "${WORD}/mcp"}`:                                     "url must begin with https:// or http://",
		`{"url": "https:///${WORD}"}`:                                "url has no host",
		`{"url": "${EMPTY}"}`:                                        "url is empty",
		`{"url": "http://[${WORD}"}`:                                 "url is malformed",
		`{"url": "https://h/", "headers": {"A": "${LINES}"}}`:        "headers.A holds a control character",
		`{"command": "x", "envFile": "${NOT}"}`:                      "envFile: environment variable NOT is not set",
		`{"command": "x", "envFile": "/big"}`:                        "envFile: the file /big cannot be read: it has more than 1 MiB",
		`{"command": "x", "watchPaths": ["a", "${NOT}"]}`:            "watchPaths[1]: environment variable NOT is not set",
		`{"url": "https://h/", "oauth": {"scopes": ["${NOT}"]}}`:     "oauth.scopes[0]: environment variable NOT is not set",
		`{"command": "x", "args": ["${input:i}"], "env": {"A": ""}}`: "args[0]: input i has no answer",
	} {
		d, problems := loadOnlyServer(t, `{"mcpServers": {"s": `+entry+`}}`).Resolve(v)
		if d != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].Message, want) || problems[0].Line != 1 || problems[0].Server != "s" {
			t.Errorf("%s: %v", entry, problems)
		}
		if strings.Contains(fmt.Sprint(problems), "hush") {
			t.Errorf("%s: a value is shown: %v", entry, problems)
		}
	}
}

func TestExplain(t *testing.T) {
	root := folderWith(t, map[string]string{
		"project/dowel.json": `{"mcpServers": {"a": {"type": "stdio", "command": "x",
  "args": ["--token", "abc", "${REGION}"], "env": {"TOKEN": "${TOKEN}", "MY_SECRET": "in clear", "NONE": "${NOT_SET}"},
  "timeout": "90s", "disabled": false, "tools": {"hide": ["p", "q"], "rename": {"r": "s"}, "describe": {"r": "t"}}, "sharing": "client", "lazy": true}}}`,
		"project/.mcp.json": `{"mcpServers": {"a": {"command": "shadowed"}}}`,
	})
	set := Load(testOptions(root))
	e, ok := set.Explain("a")
	if !ok || len(e.Shadowed) != 1 || e.Shadowed[0].Command != "shadowed" || len(e.Problems) != 1 || e.Problems[0].Variable != "NOT_SET" {
		t.Fatalf("%+v", e)
	}
	var got []string
	for _, v := range e.Values {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %q %q %d:%d %s", v.Field, v.Written, v.Value, v.At.Line, v.At.Column, strings.Join(v.From, ", "))))
	}
	want := []string{
		`type "stdio" "stdio" 1:31`, `command "x" "x" 1:51`,
		`args[0] "--token" "--token" 2:12`, `args[1] "****" "****" 2:23`, `args[2] "${REGION}" "****" 2:30 environment variable REGION`,
		`env.MY_SECRET "****" "****" 2:86`, `env.NONE "${NOT_SET}" "" 2:106 environment variable NOT_SET is not set`,
		`env.TOKEN "${TOKEN}" "****" 2:61 environment variable TOKEN`,
		`disabled "false" "false" 3:33`, `timeout "1m30s" "1m30s" 3:14`, `tools.hide "p, q" "p, q" 3:58`, `tools.rename.r "s" "s" 3:86`,
		`tools.describe.r "t" "t" 3:110`, `sharing "client" "client" 3:128`, `lazy "true" "true" 3:146`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, ok := set.Explain("b"); ok {
		t.Error("b is found")
	}
}

// Resolving does not change the entry.
func TestNothingOfTheEntryChanges(t *testing.T) {
	s := loadOnlyServer(t, `{"mcpServers": {"s": {"command": "${TOKEN}", "args": ["${TOKEN}"], "env": {"A": "${TOKEN}"}, "watchPaths": ["x"], "oauth": {"clientId": "${TOKEN}", "scopes": ["${TOKEN}"]}}}}`)
	before := fmt.Sprintf("%+v %+v", s.Spec, *s.OAuth)
	if d, _ := s.Resolve(someVariables()); d.Args[0] != "t0ken-value" || d.OAuth.Scopes[0] != "t0ken-value" || d.WatchPaths[0] != "/src/app/x" {
		t.Errorf("%+v", d.Spec)
	}
	if after := fmt.Sprintf("%+v %+v", s.Spec, *s.OAuth); after != before {
		t.Errorf("%s became %s", before, after)
	}
}
