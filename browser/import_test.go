//go:build linux

package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The servers of another tool are shown without their secrets, and the chosen ones start.
func TestImport(t *testing.T) {
	u := newUser(t)
	u.write(filepath.Join(u.home, ".cursor", "mcp.json"), `{"mcpServers": {
		"My Notes": {"command": "`+dowelPath+`", "args": ["serve", "kv", "memory=true"], "env": {"NOTES_TOKEN": "canary-of-the-token"}, "autoApprove": ["get"]},
		"left": {"command": "`+dowelPath+`", "args": ["serve", "kv", "memory=true"]}, "broken": {"args": ["x"]}}}`)
	u.start()
	p := u.openConsole()
	p.click("#rail a", "Config")
	p.click(".add button", "Import from other tools")
	p.sees("Cursor")
	p.sees("becomes my-notes")
	p.sees("line 3")
	if eval[bool](p, `document.documentElement.outerHTML.includes("canary")`) {
		t.Error("the page has the secret")
	}
	p.checkLooks("import")
	p.click("dialog label", "left") // not this one
	p.click("dialog button", "Add the chosen servers")
	p.sees("Added 1 server")
	p.click("#rail a", "Servers")
	p.state("my-notes", "ready")
	if eval[bool](p, `document.querySelector("main").textContent.includes("left")`) {
		t.Error("a server was added that was not chosen")
	}
	text, err := os.ReadFile(filepath.Join(u.home, "dowel", "dowel.json"))
	if err != nil || !strings.Contains(string(text), "canary-of-the-token") {
		t.Errorf("%v\n%s", err, text)
	}
	p.do(chromedp.Navigate(u.url + "/console/config"))
	p.click(".add button", "Import from other tools")
	p.sees("you already have the same server")
	p.checkQuiet()
}
