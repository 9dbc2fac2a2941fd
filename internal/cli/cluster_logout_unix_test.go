//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// dowel logout ends the login of the cluster: it revokes the tokens that the cluster has, and the
// restarted server needs a login.
func TestLogoutOfReplicas(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	cluster := natstest.Start(t, nil).ClientURL()
	var users []*testUser
	for range 2 {
		u := newTestUser(t)
		u.writeFile(u.userFile(), `{"gateway": {"token": "a-token-of-all-replicas", "audit": "`+filepath.Join(u.home, "audit.jsonl")+`"}, "mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
		u.startDaemon("--cluster", cluster)
		u.awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
		users = append(users, u)
	}
	users[0].logIn(as, "notes")
	for _, u := range users {
		u.awaitStates(map[string]hub.Status{"notes": hub.Ready})
	}
	as.Advance(2 * time.Hour)
	users[1].expectSuccess("hello", "call", "notes.echo", "message=hello") // refreshes the token of the cluster
	users[1].expectSuccess("You are logged out at notes. The running dowel restarts the server", "logout", "notes")
	users[1].awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
	polltest.Until(t, "the audit log of the other replica has the logout", func() bool {
		log, err := os.ReadFile(filepath.Join(users[0].home, "audit.jsonl"))
		return err == nil && strings.Contains(string(log), `"method":"servers/logout","server":"notes"`)
	})
	refreshed := as.Requests("refresh_token")[0].Form.Get("refresh_token")
	revoked := as.Requests("revoke")
	if len(revoked) != 2 || revoked[0].Form.Get("token") == refreshed {
		t.Errorf("the revoked tokens are %v", revoked)
	}
	if err := control.NewClient(control.Path(users[0].home, filepath.Join(users[0].home, "dowel"))).Do(t.Context(), "notes", "restart"); err != nil {
		t.Fatal(err)
	}
	users[0].awaitStates(map[string]hub.Status{"notes": hub.NeedsLogin})
}
