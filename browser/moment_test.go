//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A moment of Wire shows every screen as of then, read-only; the bar goes back to now.
func TestMoment(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/echo"))
	p.fill("/message", "then")
	p.click(".run", "Run")
	p.until(`document.querySelector(".result")?.textContent.includes("then")`)
	u.configureServers(map[string]json.RawMessage{"store": json.RawMessage(`"kv"`)})
	p.click("#rail a", "Servers")
	p.state("store", "ready")
	p.until(`![...document.querySelectorAll(".server a.name")].some(e => e.textContent === "everything")`)

	p.click("#rail a", "Wire")
	p.do(chromedp.Navigate(u.url + "/console/wire?q=tool:echo"))
	p.until(`document.querySelectorAll(".row").length > 0`)
	p.press("j")
	p.press(kb.Enter)
	p.click("#inspector button", "All screens as of then")
	p.sees("nothing can be changed here")
	p.click("#rail a", "Servers")
	p.state("everything", "ready")
	p.checkLooks("moment")
	if eval[bool](p, `document.querySelector("main").textContent.includes("Restart")`) {
		t.Error("the past can be changed")
	}
	p.click("#rail a", "Tools")
	p.until(`[...document.querySelectorAll(".items-list h2")].some(e => e.textContent.startsWith("everything"))`)
	p.click(".items-list a", "echo")
	p.sees("only reads")
	p.click("#rail a", "Config")
	p.until(`[...document.querySelectorAll("a.name")].some(e => e.textContent === "everything")`)
	p.click("#rail a", "Audit")
	search := eval[string](p, "location.search")
	p.click("#moment button", "later")
	p.until(fmt.Sprintf("location.search !== %q", search))
	p.click("#moment button", "Back to now")
	p.until(`document.querySelector("#moment").hidden && !location.search.includes("at=")`)
	p.click("#rail a", "Servers")
	p.state("store", "ready")
	p.checkQuiet()
}
