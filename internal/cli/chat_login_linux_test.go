package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
)

// A server that needs a login says so in the last line. /servers login logs in with a browser, and
// the model has the tools from then on.
func TestChatLogin(t *testing.T) {
	t.Parallel()
	as := authtest.Start(t, nil)
	resource := protectEverything(t, as)
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"calls": [{"name": "notes__echo", "arguments": {"message": "hi"}}]}, {"expect": ["hi"], "text": "It said hi."}]}`)
	u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"notes": {"url": "`+resource.URL+`"}}}`)
	visited, browser := filepath.Join(u.home, "visited"), filepath.Join(u.home, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\nprintf %s \"$1\" > '"+visited+".part' && mv '"+visited+".part' '"+visited+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := u.newCommand("chat", "--approve", "all")
	cmd.Env = append(cmd.Env, "BROWSER="+browser)
	p := startOnTerminal(t, cmd, 80, 24)
	p.awaitScreen("1 need login")
	p.typeText("/servers why notes\r")
	p.awaitScreen("login")
	p.typeText("/servers login notes\r")
	var page []byte
	polltest.Until(t, "the browser gets the page of the login", func() (found bool) {
		var err error
		page, err = os.ReadFile(visited)
		return err == nil
	})
	to, err := as.Approve(t.Context(), strings.TrimSpace(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(to.String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p.awaitScreen("1 ready")
	p.typeText("go\r")
	p.awaitScreen("It said hi.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	if n := as.Count("authorize"); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}
