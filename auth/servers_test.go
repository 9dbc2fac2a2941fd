package auth

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// realServer says how to use a real server, and what it then does.
type realServer struct {
	options    Options
	registered bool // with a client that was registered by hand
	noRefresh  bool // logs in again when the token has expired
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
	"figma":    {options: Options{Client: Client{Name: "Known Client"}}},
	"front":    {},
	"github":   {options: Options{Client: registered}, registered: true},
	"google":   {options: Options{Client: registered, Server: Server{Params: map[string]string{"access_type": "offline", "prompt": "consent"}}}, registered: true},
	"hydra":    {},
	"keycloak": {},
	"linear":   {},
	"miro":     {noRefresh: true},
	"notion":   {},
	"okta":     {options: Options{Client: registered}, registered: true},
	"sentry":   {},
	"slack":    {options: Options{Client: registered}, registered: true},
	"stripe":   {},
	"supabase": {},
}

// A login works with each real server, as they are known to differ from the specifications.
func TestRealServers(t *testing.T) {
	t.Parallel()
	known := slices.Sorted(maps.Keys(authtest.ServerQuirks()))
	if tested := slices.Sorted(maps.Keys(realServers)); !slices.Equal(known, tested) {
		t.Fatalf("servers with quirks: %q, tested: %q", known, tested)
	}
	for _, name := range known {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real := realServers[name]
			o := &authtest.Options{Quirks: []string{name}, Scopes: []string{"notes", "offline_access"}}
			if real.registered {
				o.Clients = []authtest.Client{{ID: registered.ID, Secret: registered.Secret, RedirectURIs: []string{testRedirect}}}
			}
			s := newSetup(t, o, real.options, "notes")
			s.mustPost(s.Transport)
			s.as.Advance(2 * time.Hour)
			s.mustPost(s.Transport)
			logins := 1
			if real.noRefresh {
				logins = 2
			}
			s.wantCounts(map[string]int{"authorize": logins})
		})
	}
}
