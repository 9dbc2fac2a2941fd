//go:build linux

package browser

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The files and the effective values of a server are shown with their places, without secrets. A
// change in an editor shows by itself. A user opens entries with the mouse and with the keyboard.
func TestConfig(t *testing.T) {
	u := newUser(t)
	u.write(filepath.Join(u.project, "dowel.json"), `{"mcpServers": {"notes": {"command": "`+dowelPath+`", "args": ["serve", "kv"], "disabled": true}}}`)
	u.configureServers(map[string]json.RawMessage{
		"store":  json.RawMessage(`"kv"`),
		"notes":  json.RawMessage(`"kv"`),
		"search": json.RawMessage(`{"url": "https://search.example/mcp", "headers": {"Authorization": "Bearer correct-horse-battery"}, "disabled": true}`),
	})
	u.start()
	p := newTab(t, u.url)
	p.show(looks[0])
	p.do(chromedp.Navigate(u.loginURL()))
	p.sees("store")
	p.click("#rail a", "Config")
	p.sees("replaces dowel.json:1")
	p.sees("1 replaced")
	p.click("a.name", "search")
	p.until(`document.querySelector("#inspector")?.textContent.includes("headers.Authorization")`)
	if eval[bool](p, `document.documentElement.outerHTML.includes("correct-horse")`) {
		t.Error("the page has the secret")
	}
	p.until(`location.pathname.endsWith("/config/search")`)
	p.press(kb.Escape)
	p.until(`document.querySelector("#inspector").hidden`)
	u.configureServers(map[string]json.RawMessage{"later": json.RawMessage(`{"command": "missing-program", "args": ["${UNSET_VARIABLE}"]}`)})
	p.until(`[...document.querySelectorAll(".server.failing")].some(e => e.textContent.includes("later") && e.textContent.includes("UNSET_VARIABLE"))`)
	u.write(filepath.Join(u.home, "dowel", "dowel.json"), `{"mcpServers": `)
	p.until(`[...document.querySelectorAll(".server.failing")].some(e => e.textContent.includes("broken"))`)
	p.press("gw")
	p.until(`location.pathname.endsWith("/wire")`)
	p.press("gc")
	p.sees("Files, the first wins")
	p.press("j")
	p.press(kb.Enter)
	p.until(`document.querySelector("#inspector")?.textContent.includes("Effective values")`)
	p.checkQuiet()
}
