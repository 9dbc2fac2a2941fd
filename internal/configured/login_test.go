package configured_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// newLoginSource returns a source with a server called s, and its hub.
func newLoginSource(t *testing.T, entry string, logins auth.Store) (*configured.Source, *hub.Upstream) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dowel.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers": {"s": `+entry+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hub.New(&hub.Options{Logger: quiet, MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond})
	t.Cleanup(func() { h.Close() })
	source := configured.New(h, configured.Options{
		Config:  config.Options{Files: []string{path}, GOOS: "linux", Env: func(string) (string, bool) { return "", false }},
		Choices: &choices{}, Logins: logins, Logger: quiet,
	})
	source.Load("the test begins")
	return source, h.Upstream("s")
}

// protect returns the server everything behind an authorization server.
func protect(t *testing.T, as *authtest.Server) string {
	t.Helper()
	handler := streamable.Handler(everything.New(), &streamable.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
	resource := as.Protect(t, handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = handler.Shutdown(ctx)
	})
	return resource.URL
}

// approveAt returns a user who approves each login at once.
func approveAt(as *authtest.Server) auth.Login {
	return auth.LoginFunc(func(ctx context.Context, r auth.LoginRequest) (url.Values, error) {
		page, err := r.Start(ctx, "http://127.0.0.1:13316/callback")
		if err != nil {
			return nil, err
		}
		to, err := as.Approve(ctx, page)
		if err != nil {
			return nil, err
		}
		return to.Query(), nil
	})
}

// A server without a login waits for one. It starts with the login of another process.
func TestServerNeedsLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	logins := auth.NewStore()
	source, u := newLoginSource(t, `{"url": "`+protect(t, as)+`"}`, logins)
	polltest.Until(t, "the server waits for a login", func() bool {
		s := u.State()
		return s.Status == hub.NeedsLogin && s.Next.IsZero()
	})
	s := u.State()
	if s.LoginURL != "" || s.Diagnosis == nil || s.Diagnosis.Advice != "Log in: dowel login s" || s.Diagnosis.Step != "login" || !strings.HasPrefix(s.Cause, "it waits for a login") {
		t.Errorf("the state is %+v with %+v", s, s.Diagnosis)
	}
	if n := as.Count("register") + as.Count("authorize"); n != 0 {
		t.Errorf("%d registrations and logins without a user, want none", n)
	}
	login, err := source.Login("s", approveAt(as))
	if err != nil {
		t.Fatal(err)
	}
	if err := login.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	u.Restart("you logged in")
	polltest.Until(t, "the server is ready", func() bool { return u.State().Status == hub.Ready })
}

// A configured Authorization field, or an entry without OAuth, gets no login.
func TestNoLogin(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ more, says string }{
		"header": {`, "headers": {"authorization": "Bearer mine"}`, "its entry has the header authorization, at "},
		"off":    {`, "oauth": false`, "its entry says so with oauth, at "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			as := authtest.Start(t, nil)
			source, u := newLoginSource(t, `{"url": "`+protect(t, as)+`"`+tt.more+`}`, auth.NewStore())
			polltest.Until(t, "the server refuses", func() bool { return u.State().Status == hub.NeedsAuthorization })
			if n := as.Count("metadata"); n != 0 {
				t.Errorf("%d requests for metadata, want none", n)
			}
			if _, err := source.Login("s", approveAt(as)); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	source, _ := newLoginSource(t, `{"command": "/bin/false"}`, auth.NewStore())
	for name, says := range map[string]string{"s": "it is started by a command", "ss": "no server of your configuration is called ss"} {
		if _, err := source.Login(name, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", name, err, says)
		}
	}
}

// A server that refuses requests and describes no login keeps its own answer.
func TestRefusalWithoutLogin(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		http.Error(w, "want an API key", http.StatusUnauthorized)
	}))
	t.Cleanup(web.Close)
	_, u := newLoginSource(t, `{"url": "`+web.URL+`/mcp"}`, auth.NewStore())
	polltest.Until(t, "the attempt has failed", func() bool { return u.State().Status != hub.Starting })
	if s := u.State(); s.Status != hub.NeedsAuthorization {
		t.Errorf("the state is %v after %v", s.Status, s.Err)
	}
	if d := u.State().Diagnosis; d == nil || !strings.Contains(d.Summary, "want an API key") || !strings.Contains(d.Advice, "in a header") {
		t.Errorf("the diagnosis is %+v", d)
	}
}

// The doctor shows the network below the authorization, and where the login is missing.
func TestDoctorNeedsLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	source, _ := newLoginSource(t, `{"url": "`+protect(t, as)+`"}`, auth.NewStore())
	d := source.Look()[0]
	var names []string
	for s := range doctor.Examine(t.Context(), doctor.Server{Name: d.Name, Target: d.Target, Options: d.Options}) {
		names = append(names, s.Name)
		if s.Name == "login" && (s.Status != doctor.Failed || s.Advice != "Log in: dowel login s" || configured.LoginOf(d.Options.HTTP.Client) == nil) {
			t.Errorf("%+v", s)
		}
	}
	if got := strings.Join(names, " "); got != "definition name connect login" {
		t.Errorf("the steps are %s", got)
	}
}

// Without gateway.auth the users of the gateway are not known, so they must not act as one account.
func TestUserLoginNeedsUsers(t *testing.T) {
	t.Parallel()
	_, u := newLoginSource(t, `{"url": "https://remote.example/mcp", "oauth": {"per": "user"}}`, auth.NewStore())
	if s := u.State(); s.Status != hub.NeedsConfiguration || !strings.Contains(s.Cause, "the gateway does not know its users") {
		t.Errorf("the state is %+v", s)
	}
}
