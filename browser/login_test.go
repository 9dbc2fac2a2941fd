//go:build linux

package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A user logs in at a server from its row: the page of the authorization server is shown before it
// is opened, and the server is ready afterwards. A login can be cancelled, and begun again.
func TestLogin(t *testing.T) {
	as := authtest.Start(t, nil)
	s := server.New("notes", "1", nil)
	server.Tool(s, "list", "Lists notes.", func(context.Context, struct{}) (string, error) { return "none", nil })
	handler := streamable.Handler(s, nil)
	resource := as.Protect(t, handler, "use")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = handler.Shutdown(ctx)
	})
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"notes": json.RawMessage(`{"url": "` + resource.URL + `"}`)})
	u.start()
	p := u.openConsole()
	p.state("notes", "needs login")
	p.click(".server button", "Log in…")
	p.sees("Look at the name of the site")
	p.checkLooks("login")
	p.click("dialog button", "Cancel")
	p.until(`!document.querySelector("dialog").open`)
	p.click(".server button", "Log in…")
	p.until(`document.querySelector("dialog").open && !!document.querySelector("dialog .url")`)
	page := eval[string](p, `document.querySelector("dialog .url").textContent`)
	if !strings.HasPrefix(page, as.URL) {
		t.Errorf("the page is %s, want one of %s", page, as.URL)
	}
	to, err := as.Approve(t.Context(), page) // as the user does in a window of the browser
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(to.String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.sees("You are logged in at notes")
	p.state("notes", "ready")
	p.until(`!document.querySelector("dialog").open`)
	p.do(chromedp.Navigate(u.url + "/console/audit"))
	p.sees("servers/login")
	p.checkQuiet()
}
