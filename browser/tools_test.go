//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// openTools opens the screen of tools of two servers.
func openTools(t *testing.T) (*user, *tab) {
	t.Helper()
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`), "tracker": json.RawMessage(entry(t, "shapes"))})
	u.start()
	p := u.openConsole()
	p.state("tracker", "ready")
	p.state("everything", "ready")
	p.click("#rail a", "Tools")
	p.sees("file_report")
	return u, p
}

// fill types a text into the field of a JSON pointer.
func (p *tab) fill(path, text string) {
	p.t.Helper()
	field := fmt.Sprintf(`document.querySelector('.issue[data-path=%q]').parentElement.querySelector(".control textarea, .control input")`, path)
	p.until("!!" + field)
	eval[chromedp.Void](p, "(e => { e.scrollIntoView({block: 'center'}); e.focus(); e.select(); })("+field+")")
	p.press(text)
}

// clickIn clicks the button with a text in the field of a JSON pointer.
func (p *tab) clickIn(path, text string) {
	p.t.Helper()
	eval[chromedp.Void](p, `document.querySelectorAll(".test-field").forEach(e => e.classList.remove("test-field"))`)
	p.until(fmt.Sprintf(`(() => { const e = document.querySelector('.issue[data-path=%q]')?.parentElement; e?.classList.add("test-field"); return !!e })()`, path))
	p.click(".test-field button", text)
}

// argumentsText returns the arguments that the page would send.
func (p *tab) argumentsText() string {
	p.t.Helper()
	p.click("[data-mode=text]", "JSON")
	text := eval[string](p, `JSON.stringify(JSON.parse(document.querySelector(".raw").value, (k, v, c) => typeof v === "number" ? "#" + c.source : v))`)
	p.click("[data-mode=form]", "Form")
	return text
}

// A user fills in each kind of field with the mouse, and calls the tool. The result shows that it
// breaks its own schema.
func TestToolShapes(t *testing.T) {
	_, p := openTools(t)
	p.click(".items-list a", "file_report")
	p.sees("One line that says what is wrong")
	if got, want := p.argumentsText(), `{"steps":[{}]}`; got != want {
		t.Errorf("at first the arguments are %s, want %s", got, want)
	}
	p.fill("/title", "It stops")
	p.clickIn("/note", "null")
	p.fill("/number", "12345678901234567890")
	p.clickIn("/urgent", "false")
	p.clickIn("/severity", "High")
	p.fill("/steps/0/do", "open")
	p.click("[aria-label='Add a row to steps']", "row")
	p.fill("/steps/1/do", "close")
	p.fill("/steps/1/times", "0")
	p.sees("must be at least 1")
	p.fill("/steps/1/times", "3")
	p.clickIn("/labels", "fill in")
	p.click(".key-name", "")
	p.press("area")
	p.press(kb.Enter)
	p.fill("/labels/area", "wire")
	p.clickIn("/place", "fill in")
	p.fill("/place/0", "47.50")
	p.clickIn("/assignee", "fill in")
	eval[chromedp.Void](p, `(e => { e.value = "1"; e.dispatchEvent(new Event("change")); })(document.querySelector("[aria-label^='assignee: which']"))`)
	p.fill("/assignee/name", "core")
	p.clickIn("/tree", "fill in")
	p.fill("/tree/text", "root")
	p.clickIn("/tree/children", "fill in")
	p.click("[aria-label='Add a row to children']", "row")
	p.click("[aria-label='1: fill in']", "fill in")
	p.fill("/tree/children/0/text", "leaf")
	p.sees("fits the schema")
	want := `{"steps":[{"do":"open"},{"do":"close","times":"#3"}],"title":"It stops","note":null,"number":"#12345678901234567890","urgent":false,"severity":"high",` +
		`"labels":{"area":"wire"},"place":["#47.50","#0"],"assignee":{"kind":"team","name":"core"},"tree":{"text":"root","children":[{"text":"leaf"}]}}`
	if got := p.argumentsText(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p.click(".run", "Run")
	p.sees("does not match the output schema")
	p.sees("12345678901234567890")
	p.until(`document.querySelector(".verdict").textContent.includes("/id")`)
	p.until(`document.querySelectorAll(".calls li").length === 1`)
	p.click("[aria-label='Edit call 1']", "edit")
	p.fill("/title", "It goes on")
	p.click(".run", "Run")
	p.until(`document.querySelectorAll(".calls li").length === 2`)
	p.until(`document.querySelector(".result").textContent.includes("It goes on")`)
	address := eval[string](p, "location.href")
	p.click(".calls a", "")
	p.do(chromedp.Navigate(address)) // the address holds the call, and dowel its result
	p.until(`document.querySelector(".result")?.textContent.includes("It goes on")`)
	p.click("#rail a", "Wire")
	p.sees("file_report")
	p.sees("console")
	p.checkQuiet()
}

// A user finds a tool by what it does, fills it in and runs it, with the keyboard alone.
func TestToolsByKeyboard(t *testing.T) {
	_, p := openTools(t)
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("/")
	p.until(`document.activeElement.id === "query"`)
	eval[chromedp.Void](p, `document.activeElement.value = ""`)
	p.press("adds two numbers")
	p.press(kb.Enter)
	p.until(`document.querySelector(".items-list a .item-name")?.textContent === "add"`)
	p.press(kb.Escape)
	p.press("j")
	p.press(kb.Enter)
	p.sees("Adds two numbers")
	p.press("e")
	p.until(`document.activeElement.matches(".form textarea")`)
	eval[chromedp.Void](p, `document.activeElement.value = ""`) // the driver types the key, too
	p.press("2")
	p.press(kb.Tab)
	for range 3 { // past the buttons of the next field
		if eval[bool](p, `document.activeElement.matches(".form textarea")`) {
			break
		}
		p.press(kb.Tab)
	}
	p.press("40")
	p.sees("fits the schema")
	p.press(kb.Escape)
	p.press("r")
	p.until(`document.querySelector(".result")?.textContent.includes("42")`)
	p.press("gs")
	p.sees("tracker")
	p.checkQuiet()
}

// A call shows its progress, can be cancelled, and continues in dowel while the page is elsewhere.
func TestCallsGoOn(t *testing.T) {
	u, p := openTools(t)
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/slow"))
	p.fill("/seconds", "600")
	p.click(".run", "Run")
	p.until(`document.querySelector(".run").textContent === "Cancel" && !!document.querySelector("progress")`)
	address := eval[string](p, "location.href")
	p.click("#rail a", "Servers")
	p.state("tracker", "ready")
	p.do(chromedp.Navigate(address))
	p.until(`document.querySelector(".run")?.textContent === "Cancel"`)
	p.click(".run", "Cancel")
	p.sees("cancelled by you")
	p.until(`document.querySelector(".run").textContent === "Run"`)
	p.checkQuiet()
}

// The server proposes values while an argument of a prompt is typed, and a resource can be watched:
// the subscription shows its state and each change.
func TestCompletionAndWatch(t *testing.T) {
	u, p := openTools(t)
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/prompt/test_prompt_with_arguments"))
	p.fill("/arg1", "par")
	p.click(".suggestions button", "party")
	p.until(`document.querySelector(".form textarea").value === "party"`)
	p.fill("/arg2", "x")
	p.click(".run", "Get")
	p.until(`document.querySelector(".result")?.textContent.includes("party")`)

	p.do(chromedp.Navigate(u.url + "/console/tools/everything/resource/" + url.PathEscape("test://watched-resource")))
	p.click(".calling button", "Watch")
	p.sees("acknowledged")
	u.run(false, "call", "everything.test_trigger_resource_update")
	p.until(`[...document.querySelectorAll(".output .notes li")].some(e => e.textContent.endsWith("changed"))`)
	p.checkLooks("watch")
	p.click(".calling button", "Watch")
	p.until(`!document.body.textContent.includes("acknowledged")`)
	p.click("#rail a", "Servers")
	p.until(`[...document.querySelectorAll(".client")].some(e => /≈[\d,]+ tokens/.test(e.textContent))`)
	p.checkQuiet()
}

// One click calls a tool as a client of each era, with both results and questions side by side. The
// address shows them again.
func TestBothEras(t *testing.T) {
	u, p := openTools(t)
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/structured_object"))
	p.click(".calling button", "Both eras")
	p.until(`document.querySelectorAll(".era .result").length === 2`)
	p.sees("As a client of 2026-07-28")
	p.sees("As a client of 2025-11-25")
	p.sees("Both results tell the same.")
	address := eval[string](p, "location.href")
	p.click("#rail a", "Servers")
	p.state("tracker", "ready")
	p.do(chromedp.Navigate(address))
	p.until(`document.querySelectorAll(".era .result").length === 2`)
	p.checkLooks("both-eras")

	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/test_elicitation"))
	p.fill("/message", "Who are you?")
	p.click(".calling button", "Both eras")
	p.until(`document.querySelectorAll(".era .ask-box").length === 2`)
	for n := range 2 {
		p.click(fmt.Sprintf(".era:nth-child(%d) .ask-box button", n+1), "Decline")
	}
	p.until(`document.querySelectorAll(".era .result").length === 2`)
	p.checkQuiet()
}

// A question of the server appears in its call, and the user answers it there. A wrong answer is
// refused.
func TestQuestions(t *testing.T) {
	u, p := openTools(t)
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/test_elicitation"))
	p.fill("/message", "Who are you?")
	p.click(".run", "Run")
	p.until(`!!document.querySelector(".ask-box .form")`)
	p.sees("waits for an answer")
	p.click(".ask-box button", "Answer")
	p.sees("missing required property")
	p.fill("/username", "ada")
	p.fill("/email", "ada@example.com")
	p.click(".ask-box button", "Answer")
	p.sees("answered: accept")
	p.until(`document.querySelector(".result")?.textContent.includes("ada@example.com")`)
	p.click(".run", "Run")
	p.click(".ask-box button", "Decline")
	p.sees("answered: decline")
	p.checkOrigin() // the browser notes the refused answer in its console
}

// Results of each type of content are shown.
func TestResults(t *testing.T) {
	u, p := openTools(t)
	for _, call := range []struct{ path, shown string }{
		{"everything/tool/test_image_content", `document.querySelector(".binary img")?.naturalWidth > 0`},
		{"everything/tool/test_audio_content", `!!document.querySelector(".binary audio")`},
		{"everything/tool/test_embedded_resource", `!!document.querySelector(".block pre")`},
		{"everything/tool/resource_links", `!!document.querySelector(".block a")`},
		{"everything/tool/structured_object", `!!document.querySelector(".verdict.ok")`},
		{"everything/tool/test_error_handling", `document.querySelector(".progress").textContent.includes("the tool failed")`},
		{"tracker/prompt/triage", `document.querySelector(".block")?.textContent.includes("Sort the reports since")`},
	} {
		p.do(chromedp.Navigate(u.url + "/console/tools/" + call.path))
		p.until(`!!document.querySelector(".run")`)
		if call.path == "tracker/prompt/triage" {
			p.fill("/since", "2026-11-01")
		}
		p.click(".run", "")
		p.until(call.shown)
	}
	p.checkQuiet()
}
