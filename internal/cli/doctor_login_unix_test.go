//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// The doctor says that the credentials of the client are wrong, and does not take the login of
// another account for the login of the entry.
func TestDoctorOfWrongClient(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Clients: []authtest.Client{{ID: "bot", Secret: "right"}}})
	resource := protectEverything(t, as)
	entry := func(account, secret string) string {
		return `{"url": "` + resource.URL + `", "oauth": {"grant": "client_credentials", "clientId": "bot", "clientSecret": "` + secret + `", "account": "` + account + `"}}`
	}
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {"good": `+entry("a", "right")+`, "bad": `+entry("b", "wrong")+`}}`)
	u.expectSuccess("echo", "tools", "good")
	u.expectSuccess("you are logged in", "doctor", "good")
	out := u.runDowel("doctor", "bad")
	if out.code == exit.OK || !strings.Contains(out.stdout, "Correct the client in the oauth settings of its entry") || strings.Contains(out.stdout, "you are logged in") {
		t.Errorf("%+v", out)
	}
}

// A login that fails says why, and does not advise to log in. Other commands do.
func TestAdviceOfFailedLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"no-registration", "no-documents"}})
	resource := protectEverything(t, as)
	u := newTestUser(t)
	out := u.expectFailure(exit.Connection, "create a client there with the redirect URI http://127.0.0.1:", "login", "--no-browser", "--url", resource.URL)
	if strings.Contains(out.stderr, "dowel login") {
		t.Errorf("%+v", out)
	}
	u.expectFailure(exit.Connection, "log in with dowel login SERVER", "tools", "--url", resource.URL)
}
