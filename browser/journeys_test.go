//go:build linux

package browser

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// state waits until a server shows a state.
func (p *tab) state(server, want string) {
	p.t.Helper()
	p.until(`[...document.querySelectorAll(".server")].some(s => s.querySelector(".name").title === "` + server + `" && s.querySelector(".state").textContent.startsWith("` + want + `"))`)
}

// A user turns servers off and on, restarts one, and allows one, with the mouse.
func TestSteering(t *testing.T) {
	_, p := openConsole(t)
	p.state("kv", "disabled")
	p.click(`[aria-label="Enable kv"]`, "Enable")
	p.state("kv", "ready")
	p.click(".server .name", "kv")
	p.click(`#inspector [aria-label="Disable kv"]`, "Disable")
	p.state("kv", "disabled")
	p.click(`[aria-label="Restart everything"]`, "Restart")
	p.sees("everything restarts")
	p.state("everything", "ready")
	p.click(`[aria-label="What would run team-db"]`, "What would run")
	p.sees("postgres://team@db/prod")
	p.click("dialog button", "Not now")
	p.state("team-db", "needs trust")
	p.click(`[aria-label="What would run team-db"]`, "What would run")
	p.click("dialog button", "Allow")
	p.until(`![...document.querySelectorAll(".server")].some(s => s.textContent.includes("team-db") && s.textContent.includes("needs trust"))`)
	p.checkQuiet()
}

// A user finds a failed call and reads what the server answered, with the keyboard alone.
func TestKeyboard(t *testing.T) {
	_, p := openConsole(t)
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("gw")
	p.sees("search_code")
	p.press("/")
	p.until(`document.activeElement.id === "query"`)
	eval[chromedp.Void](p, `document.activeElement.value = ""`) // the driver types the key, too
	p.press("status:tool-error")
	p.press(kb.Enter)
	p.until(`location.search.includes("status%3Atool-error") && document.querySelectorAll(".row:not([hidden])").length === 1`)
	p.press(kb.Escape)
	p.press("j")
	p.press(kb.Enter)
	p.sees("Started")
	p.press(kb.ArrowRight)
	p.until(`document.querySelectorAll(".row.child:not([hidden])").length === 4`)
	for range 3 {
		p.press(kb.ArrowDown)
	}
	p.sees("the token may not delete")
	p.until(`location.search.includes("sel=frame")`)
	address := eval[string](p, "location.href")
	p.do(chromedp.Reload())
	p.sees("the token may not delete") // the address holds the state
	if now := eval[string](p, "location.href"); now != address {
		t.Errorf("%s became %s", address, now)
	}
	p.press(kb.Escape)
	p.until(`document.querySelector("#inspector").hidden`)
	p.press("gs")
	p.sees("JIRA_API_TOKEN")
	p.press("?")
	p.until(`document.querySelector("dialog").open`)
	p.press(kb.Escape)
	p.until(`!document.querySelector("dialog").open`)
	p.checkQuiet()
}

// Pausing holds rows back. New operations appear by themselves.
func TestPause(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start()
	p := newTab(t, u.url)
	p.login(u)
	p.press("gw")
	p.click("button", "Pause")
	u.run(false, "call", "everything.echo", "message=held")
	p.until(`/Go on, \d+ new/.test(document.body.textContent)`)
	if eval[bool](p, `document.querySelector(".list").textContent.includes("held")`) {
		t.Error("a row came while the page was paused")
	}
	p.click("button", "Go on")
	p.sees(`{"message":"held"}`)
	u.stop()
	p.sees("waiting for dowel")
	p.checkOrigin()
}

// The page of a dowel that is read only changes nothing.
func TestReadOnly(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start("--console=read")
	p := newTab(t, u.url)
	p.login(u)
	p.sees("read only")
	p.state("everything", "ready")
	if eval[bool](p, `!!document.querySelector("[aria-label='Restart everything']")`) {
		t.Error("it offers a change")
	}
	if code := eval[int](p, `fetch("/console/api/v1/servers/everything/restart", {method: "POST", body: "{}", headers: {"Content-Type": "application/json", Authorization: "Bearer " + localStorage.getItem("dowel.token")}}).then(r => r.status)`); code != 403 {
		t.Errorf("a change: %d", code)
	}
}
