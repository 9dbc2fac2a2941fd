//go:build linux

package browser

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Calls, actions of the user and changes of the configuration appear by themselves. A user filters
// them, and opens one, with the mouse and with the keyboard.
func TestAudit(t *testing.T) {
	u := newUser(t)
	servers := map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`), "bad": json.RawMessage(entry(t, "hostile"))}
	u.configureServers(servers)
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	p.state("bad", "ready")
	p.click("#rail a", "Audit")
	p.sees("Nothing was called, asked or changed yet")
	u.run(false, "call", "everything.echo", "message=hello")
	u.run(true, "call", "bad.evil", "Text=x")
	p.sees("everything.echo")
	p.sees("bad.evil")
	u.run(false, "servers", "disable", "bad")
	p.sees("servers/disable")
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`), "store": json.RawMessage(`"kv"`)})
	p.sees("+ store in")
	p.click(".row", "+ store in")
	p.until(`document.querySelector("#inspector .added")?.textContent.includes("store")`)
	p.until(`location.search.includes("sel=")`)
	p.press(kb.Escape)
	p.until(`document.querySelector("#inspector").hidden && !location.search.includes("sel=")`)
	p.press("/")
	p.until(`document.activeElement.id === "query"`)
	eval[chromedp.Void](p, `document.activeElement.value = ""`) // the driver types the key, too
	p.press("ECHO ok")
	p.press(kb.Enter)
	p.until(`document.querySelectorAll(".row:not([hidden])").length === 1`)
	p.press(kb.Escape)
	p.press("j")
	p.press(kb.Enter)
	p.until(`document.querySelector("#inspector")?.textContent.includes("tools/call")`)
	p.do(chromedp.Reload())
	p.until(`document.querySelector("#inspector")?.textContent.includes("tools/call")`) // the address holds the state
	p.checkQuiet()
}
