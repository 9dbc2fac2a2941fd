//go:build unix

package cli

import (
	"testing"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A server that lists its tools to everyone and wants a token for their calls runs without a login.
// A call says which login it needs, and works after that login.
func TestLoginForCalls(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, &authtest.Options{Quirks: []string{"challenge-per-tool"}})
	resource := protectEverything(t, as)
	u := newTestUser(t)
	u.writeFile(u.userFile(), `{"mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
	u.startDaemon()
	u.awaitStates(map[string]hub.Status{"notes": hub.Ready})
	u.expectFailure(exit.Failed, "needs a login, which the user of the gateway must make: dowel login notes", "call", "notes.echo", "message=hi")
	u.expectFailure(exit.Protocol, "log in with dowel login SERVER, or with dowel login --url", "call", "echo", "message=hi", "--url", resource.URL)
	u.logIn(as, "notes")
	u.expectSuccess("hi", "call", "notes.echo", "message=hi")
	u.expectSuccess("you are logged in", "doctor", "notes")
	u.expectSuccess("hi", "call", "echo", "message=hi", "--url", resource.URL)
	if n := as.Count("authorize"); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}
