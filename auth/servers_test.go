package auth

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/authquirks"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// realServer says how to use a real server, and what it then does.
type realServer struct {
	options    Options
	registered bool // with a client that was registered by hand
	noRefresh  bool // logs in again when the token has expired
	metadata   bool // needs the address of the metadata, because the issuer in it is another
}

var registered = Client{ID: "mine", Secret: "s3cret/with:odd+chars", RedirectURI: testRedirect}

// realServers has the options that each real server needs.
var realServers = map[string]realServer{
	"asana":      {options: Options{Client: registered, Server: Server{Resource: "https://elsewhere.example/mcp"}}, registered: true},
	"atlassian":  {},
	"auth0":      {options: Options{Server: Server{Params: map[string]string{"audience": "https://api.example"}}}},
	"cloudflare": {},
	"cognito":    {options: Options{Client: registered, Server: Server{AssumePKCE: true}}, registered: true},
	"entra": {
		options: Options{Client: registered, Server: Server{AssumePKCE: true, OmitResource: true, Params: map[string]string{"prompt": ""}}}, registered: true,
	},
	"context7":   {metadata: true},
	"figma":      {options: Options{Client: Client{Name: "Known Client"}}},
	"front":      {},
	"github":     {options: Options{Client: registered}, registered: true},
	"google":     {options: Options{Client: registered, Server: Server{Params: map[string]string{"access_type": "offline", "prompt": "consent"}}}, registered: true},
	"hydra":      {},
	"keycloak":   {},
	"linear":     {},
	"miro":       {noRefresh: true},
	"notion":     {},
	"okta":       {options: Options{Client: registered}, registered: true},
	"salesforce": {metadata: true},
	"sentry":     {},
	"skyvern":    {metadata: true},
	"slack":      {options: Options{Client: registered}, registered: true},
	"stripe":     {},
	"supabase":   {},
	"workos":     {},
}

// A login works with each real server, as they are known to differ from the specifications.
func TestRealServers(t *testing.T) {
	t.Parallel()
	known := slices.Sorted(maps.Keys(authquirks.Servers))
	if tested := slices.Sorted(maps.Keys(realServers)); !slices.Equal(known, tested) {
		t.Fatalf("servers with quirks: %q, tested: %q", known, tested)
	}
	for _, name := range known {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real := realServers[name]
			s := newRealSetup(t, name)
			o := real.options
			if o.Login = s.login; real.metadata {
				o.Server.MetadataURL = s.as.URL + "/.well-known/oauth-authorization-server"
			}
			s.Transport = s.newTransport(o)
			s.mustSend(s.Transport, toolCall)
			s.as.Advance(2 * time.Hour)
			s.mustSend(s.Transport, toolCall)
			logins := 1
			if real.noRefresh {
				logins = 2
			}
			s.wantCounts(map[string]int{"authorize": logins})
		})
	}
}

// toolCall is the body of a request: some servers want a token only for calls of tools.
const toolCall = `{"method":"tools/call","params":{"name":"search"}}`

// newRealSetup returns a setup with the quirks of a real server, and a Transport without options.
func newRealSetup(t *testing.T, name string) *setup {
	t.Helper()
	o := &authtest.Options{Quirks: []string{name}, Scopes: []string{"notes", "offline_access"}}
	if realServers[name].registered {
		o.Clients = []authtest.Client{{ID: registered.ID, Secret: registered.Secret, RedirectURIs: []string{testRedirect}}}
	}
	return newSetup(t, o, Options{}, "notes")
}

// Each setting of a real server is needed: with none but the client, a login fails, or the user
// must log in again.
func TestRealServersNeedTheirSettings(t *testing.T) {
	t.Parallel()
	for name, real := range realServers {
		needed := map[string]Server{}
		o, all := real.options, real.options.Server
		if all.Resource != "" || real.metadata {
			needed["none"] = Server{}
		}
		if all.AssumePKCE {
			needed["AssumePKCE"] = Server{OmitResource: all.OmitResource, Params: all.Params}
		}
		if all.OmitResource {
			needed["OmitResource"] = Server{AssumePKCE: all.AssumePKCE, Params: all.Params}
		}
		if name == "google" || name == "entra" {
			needed["Params"] = Server{AssumePKCE: all.AssumePKCE, OmitResource: all.OmitResource}
		}
		if o.Client != (Client{}) {
			needed["Client"] = all
		}
		for setting, server := range needed {
			t.Run(name+" without "+setting, func(t *testing.T) {
				t.Parallel()
				s := newRealSetup(t, name)
				tried := o
				tried.Server, tried.Login = server, s.login
				if setting == "Client" {
					tried.Client = Client{}
				}
				s.Transport = s.newTransport(tried)
				_, err := post(t.Context(), s.Transport, s.rs.URL, toolCall)
				s.as.Advance(2 * time.Hour)
				_, again := post(t.Context(), s.Transport, s.rs.URL, toolCall)
				if err == nil && again == nil && s.as.Count("authorize") == 1 {
					t.Error("the server works without it")
				}
			})
		}
	}
}

// The guide for users has the settings of each real server.
func TestRealServersInGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guide-program.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(guide)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| ") {
			rows[strings.ToLower(strings.TrimPrefix(cells[0], "| "))] = cells[1]
		}
	}
	for name, real := range realServers {
		if got, want := rows[name], guideSettings(real); got != want {
			t.Errorf("the guide says %q of %s, want %q", got, name, want)
		}
	}
}

// guideSettings returns options in the words of the guide. Names of clients cannot be configured.
func guideSettings(real realServer) string {
	var all []string
	o := real.options
	if o.Client.ID != "" {
		all = append(all, "your client")
	}
	if o.Server.AssumePKCE {
		all = append(all, "`\"assumePKCE\": true`")
	}
	if o.Server.OmitResource {
		all = append(all, "`\"resource\": \"\"`")
	}
	if o.Server.Resource != "" {
		all = append(all, "`\"resource\": \"…\"`")
	}
	if real.metadata {
		all = append(all, "`\"metadataUrl\": \"…\"`")
	}
	if params := maps.Clone(o.Server.Params); len(params) > 0 {
		if params["audience"] != "" {
			params["audience"] = "…"
		}
		text, _ := json.Marshal(params) // a map of strings
		all = append(all, "`\"params\": "+string(text)+"`")
	}
	return cmp.Or(strings.Join(all, ", "), "–")
}
