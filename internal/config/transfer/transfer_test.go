package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
)

func options(t *testing.T) config.Options {
	return config.Options{Home: t.TempDir(), Project: t.TempDir(), GOOS: "linux", Env: func(string) (string, bool) { return "", false }}
}

// Each entry that Command writes for a tool is read back as the same command.
func TestEveryTool(t *testing.T) {
	for _, d := range config.Dialects() {
		t.Run(d.Name, func(t *testing.T) {
			o := options(t)
			place := d.Places(o)[0]
			format, ok := edit.FormatOf(place.Path)
			if !ok {
				t.Fatalf("%s has no format", place.Path)
			}
			text, err := edit.Set(nil, format, transfer.Path(d, "dowel"), transfer.Command(d, "dowel", "/usr/bin/dowel", "up", "--stdio"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, place.Path, text)
			found := servers(t, o, d.Name)
			if len(found) != 1 || found[0].Name != "dowel" || found[0].Kind != config.Stdio || found[0].Command != "/usr/bin/dowel" ||
				len(found[0].Args) != 2 || len(found[0].Problems) > 0 {
				t.Errorf("%s\n%+v", text, found)
			}
		})
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func servers(t *testing.T, o config.Options, dialect string) (all []*config.Server) {
	t.Helper()
	if dialect == config.Own {
		return config.Load(o).Servers
	}
	for _, f := range config.Discover(o, dialect) {
		if len(f.Problems) > 0 {
			t.Error(f.Problems)
		}
		all = append(all, f.Servers...)
	}
	return all
}

// An imported entry means the same in dowel's own file.
func TestEntry(t *testing.T) {
	o := options(t)
	write(t, filepath.Join(o.Home, ".gemini/settings.json"), []byte(`{"mcpServers": {
		"old": {"url": "https://example.com/sse", "headers": {"Authorization": "Bearer $TOKEN"}, "timeout": 5000},
		"new": {"httpUrl": "https://example.com/mcp", "includeTools": ["a", "b"]},
		"local": {"command": "node", "args": ["x.js", "${HOME}"], "cwd": "work", "env": {"A": "1", "B": "$B"}}}}`))
	text := []byte("{}")
	before := servers(t, o, "gemini")
	for _, s := range before {
		var err error
		if text, err = edit.Set(text, edit.JSON, []string{"mcpServers", s.Name}, transfer.Entry(s, o.Project)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(o.Dir(), "dowel.json"), text)
	set := config.Load(o)
	if len(set.Problems) > 0 {
		t.Error(set.Problems)
	}
	v := o.Variables()
	v.Env = func(name string) (string, bool) { return "value of " + name, true }
	for _, s := range before {
		was, problems := s.Resolve(v)
		now, more := set.Server(s.Name).Resolve(v)
		if was == nil || now == nil {
			t.Fatal(problems, more)
		}
		was.Dir, now.Dir = "", "" // relative to the file
		if was.Fingerprint() != now.Fingerprint() || was.Idle != now.Idle || was.Total != now.Total || len(was.Tools.Only) != len(now.Tools.Only) {
			t.Errorf("%s: %+v is %+v\n%s", s.Name, was.Spec, now.Spec, text)
		}
	}
}

// In the user's file the project's folder replaces its variable. In the project's file the variable
// stays.
func TestEntryOfWorkspace(t *testing.T) {
	s := &config.Server{Spec: config.Spec{
		Kind: config.Stdio, Command: "${workspaceFolder}/bin/x", Dir: "${workspaceFolder}",
		Args: []string{"--at=${workspaceFolder:-/none}/a", "${workspaceFolderBasename}", "$${workspaceFolder}/b", "${HOME}/c", "${A:-${workspaceFolder}}"},
		Env:  map[string]string{"KEY": "${file:key.txt}", "ABSOLUTE": "${file:/etc/key}", "HOME_KEY": "${file:~/key}"},
	}}
	for _, c := range []struct{ project, want string }{
		{"/src/app", "{/src/app/bin/x [--at=/src/app/a app $${workspaceFolder}/b ${HOME}/c ${A:-/src/app}] /src/app ${file:/src/app/key.txt}}"},
		{"/", "{/bin/x [--at=/a / $${workspaceFolder}/b ${HOME}/c ${A:-/}] / ${file:/key.txt}}"},
		{"", "{${workspaceFolder}/bin/x [--at=${workspaceFolder:-/none}/a ${workspaceFolderBasename} $${workspaceFolder}/b ${HOME}/c ${A:-${workspaceFolder}}] ${workspaceFolder} ${file:key.txt}}"},
	} {
		values := map[string]any{}
		for _, m := range transfer.Entry(s, c.project) {
			values[m.Key] = m.Value
		}
		var key, absolute, home any
		for _, m := range values["env"].(edit.Object) {
			switch m.Key {
			case "KEY":
				key = m.Value
			case "ABSOLUTE":
				absolute = m.Value
			case "HOME_KEY":
				home = m.Value
			}
		}
		got := fmt.Sprintf("{%v %v %v %v}", values["command"], values["args"], values["cwd"], key)
		if got != c.want || absolute != "${file:/etc/key}" || home != "${file:~/key}" {
			t.Errorf("in %q:\n got %s\nwant %s\n%v %v", c.project, got, c.want, absolute, home)
		}
	}
}

// An entry of a project's file stays as it is in another file of the project.
func TestEntryOfProject(t *testing.T) {
	s := &config.Server{Source: config.Source{Scope: config.Project}, Spec: config.Spec{Kind: config.Stdio, Command: "x"}}
	for project, want := range map[string]int{"/src/app": 2, "": 1} {
		if got := transfer.Entry(s, project); len(got) != want {
			t.Errorf("in %q: %v", project, got)
		}
	}
}

// The login configuration of another tool stays complete, and so does dowel's own.
func TestEntryKeepsLogin(t *testing.T) {
	for _, tt := range []struct {
		dialect, file, text string
		want                config.OAuth
	}{
		{"cursor", ".cursor/mcp.json", `{"mcpServers": {"a": {"url": "https://h/mcp", "auth": {"CLIENT_ID": "x", "CLIENT_SECRET": "${env:S}", "scopes": ["r", "w"]}}}}`,
			config.OAuth{ClientID: "x", ClientSecret: "${env:S}", Scopes: []string{"r", "w"}}},
		{"inspector", ".mcp-inspector/mcp.json", `{"mcpServers": {"a": {"url": "https://h/mcp", "oauth": {"clientId": "x", "authorizationParams": {"audience": "y"}, "tokenUrl": "https://h/t", "authorizationUrl": "https://h/a"}}}}`,
			config.OAuth{ClientID: "x", Params: map[string]string{"audience": "y"}, TokenURL: "https://h/t", AuthorizationURL: "https://h/a"}},
		{config.Own, ".config/dowel/dowel.json", `{"mcpServers": {"a": {"url": "https://h/mcp", "oauth": {"clientId": "x", "privateKey": "k.pem", "clientDocument": "https://h/c", "issuer": "https://h",
			"metadataUrl": "https://h/m", "redirectUri": "http://localhost:1/c", "callbackPort": 1, "resource": "", "account": "w", "grant": "client_credentials", "dpop": true, "assumePKCE": true}}}}`,
			config.OAuth{ClientID: "x", PrivateKey: "k.pem", ClientDocument: "https://h/c", Issuer: "https://h", MetadataURL: "https://h/m", RedirectURI: "http://localhost:1/c",
				CallbackPort: "1", Resource: config.OmitResource, Account: "w", Grant: config.ClientCredentials, DPoP: true, AssumePKCE: true}},
		{config.Own, ".config/dowel/dowel.json", `{"mcpServers": {"a": {"url": "https://h/mcp", "oauth": {"clientId": "x", "issuer": "https://h", "per": "user", "exchange": "id-jag",
			"idpTokenUrl": "https://i/t", "idpClientId": "y", "idpClientSecret": "${S}"}}}}`,
			config.OAuth{ClientID: "x", Issuer: "https://h", PerUser: true, Exchange: config.ExchangeIDJAG, IDPTokenURL: "https://i/t", IDPClientID: "y", IDPClientSecret: "${S}"}},
		{config.Own, ".config/dowel/dowel.json", `{"mcpServers": {"a": {"url": "https://h/mcp", "oauth": false}}}`, config.OAuth{Off: true}},
	} {
		o := options(t)
		write(t, filepath.Join(o.Home, tt.file), []byte(tt.text))
		found := servers(t, o, tt.dialect)
		if len(found) != 1 || !reflect.DeepEqual(*found[0].OAuth, tt.want) {
			t.Fatalf("%s: %+v", tt.dialect, found)
		}
		text, err := edit.Set(nil, edit.JSON, []string{"mcpServers", "a"}, transfer.Entry(found[0], ""))
		if err != nil {
			t.Fatal(err)
		}
		own := options(t)
		write(t, filepath.Join(own.Home, ".config/dowel/dowel.json"), text)
		if again := servers(t, own, config.Own); len(again) != 1 || !reflect.DeepEqual(*again[0].OAuth, tt.want) {
			t.Errorf("%s became %s", tt.dialect, text)
		}
	}
}
