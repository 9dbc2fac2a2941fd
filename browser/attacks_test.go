//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A page of another port of this machine can neither read, change nor show the console, although
// the browser is logged in.
func TestOtherPort(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.start()
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>attacker</title><iframe src="%s/console/"></iframe><img id="image" src="%[1]s/console/~x/icon.svg">
			<form id="form" method="post" enctype="text/plain" target="_self" action="%[1]s/console/api/v1/reload"><input name='{"a":"' value='"}'></form>`, u.url)
	}))
	t.Cleanup(attacker.Close)
	p := newTab(t, u.url)
	p.login(u)
	p.state("everything", "ready")
	token := eval[string](p, `localStorage.getItem("dowel.token")`)
	p.do(chromedp.Navigate(attacker.URL))
	if eval[bool](p, `localStorage.getItem("dowel.token") !== null || document.cookie !== ""`) {
		t.Error("the other port has credentials")
	}
	for _, attack := range []string{
		`fetch("%s/console/api/v1/status")`, `fetch("%s/console/api/v1/status", {credentials: "include"})`,
		`fetch("%s/console/api/v1/servers/everything/disable", {method: "POST", body: "{}", headers: {"Content-Type": "application/json", Authorization: "Bearer ` + token + `"}})`,
		`fetch("%s/console/api/v1/reload", {mode: "no-cors", method: "POST", body: "{}"})`,
		`fetch("%s/console/api/login", {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}})`,
	} {
		if outcome := eval[string](p, fmt.Sprintf(attack, u.url)+`.then(r => "read " + r.status, e => "refused")`); outcome != "refused" {
			t.Errorf("%s: %s", attack, outcome)
		}
	}
	if width := eval[int](p, `document.getElementById("image").naturalWidth`); width != 0 {
		t.Error("the image is shown")
	}
	if shown := eval[bool](p, `(() => { try { return !!document.querySelector("iframe").contentDocument.querySelector("#top") } catch { return false } })()`); shown {
		t.Error("the console is in a frame")
	}
	eval[chromedp.Void](p, `document.getElementById("form").submit()`)
	p.sees("may not open or use the console")
	p.do(chromedp.Navigate(attacker.URL))
	eval[chromedp.Void](p, fmt.Sprintf(`location.href = "%s/console/servers"`, u.url))
	p.sees("may not open or use the console")
	if status := u.run(false, "status"); !strings.Contains(status, "ready") {
		t.Errorf("the server was changed:\n%s", status)
	}
}

// A server with hostile text in every field runs nothing, moves no text and freezes nothing.
func TestHostileServer(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"evil": json.RawMessage(entry(t, "hostile"))})
	u.start()
	p := newTab(t, u.url)
	p.login(u)
	p.state("evil", "ready")
	u.run(true, "call", "evil.evil", "Text=<b>x</b>")
	u.run(true, "call", "evil.deep")
	for _, screen := range []struct{ path, ready string }{
		{"/console/servers/evil", "Starts"}, {"/console/servers/evil?tab=output", "onerror"},
		{"/console/wire?rows=frames&q=kind:stray", "<img src=x"}, {"/console/wire?rows=frames&q=method:tools/list", "tools/list"}, {"/console/wire?q=tool:evil|deep", "evil"},
	} {
		p.do(chromedp.Navigate(u.url + screen.path))
		p.sees(screen.ready)
		if strings.Contains(screen.path, "wire") {
			eval[chromedp.Void](p, `document.querySelector(".list").focus()`)
			for range 4 {
				p.press("j")
				p.press("\r")
				p.until(`!document.querySelector("#inspector").hidden`)
			}
		}
		if title := eval[string](p, "document.title"); title == "owned" {
			t.Fatalf("%s: a script of the server ran", screen.path)
		}
		if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.textContent)`) {
			t.Errorf("%s: hidden characters are not shown", screen.path)
		}
		if eval[bool](p, `!!document.querySelector("main img, main script, #inspector img, #inspector script, a[href^='javascript:']")`) {
			t.Errorf("%s: markup of the server", screen.path)
		}
		p.checkWidth(screen.path)
	}
	p.checkQuiet()
}

// Hostile tools, schemas and results are shown as text, and can be called.
func TestHostileTools(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"evil": json.RawMessage(entry(t, "hostile"))})
	u.start()
	p := newTab(t, u.url)
	p.login(u)
	p.state("evil", "ready")
	for _, tool := range []struct{ name, field, shown string }{{"schema", "/__proto__", `"__proto__":"x"`}, {"evil", "/Text", "Show all"}, {"deep", "", "the tool failed"}} {
		p.do(chromedp.Navigate(u.url + "/console/tools/evil/tool/" + tool.name))
		p.until(`!!document.querySelector(".run")`)
		if tool.field != "" {
			p.fill(tool.field, "x")
		}
		if tool.name == "schema" {
			p.clickIn("/a~1b~0c", "fill in")
			p.clickIn("/self", "fill in")
			p.fill("/self/__proto__", "deeper")
			p.sees("fits the schema")
		}
		p.click(".run", "Run")
		p.sees(tool.shown)
		if title := eval[string](p, "document.title"); title == "owned" {
			t.Fatalf("%s: a script of the server ran", tool.name)
		}
		if eval[bool](p, `/[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.textContent) || !!document.querySelector("main img, main script, a[href^='javascript:']")`) {
			t.Errorf("%s: markup or hidden characters of the server", tool.name)
		}
		if tool.name == "schema" && eval[bool](p, `({}).x !== undefined || "deeper" in Object.prototype`) {
			t.Error("the prototype of objects is changed")
		}
		p.checkWidth(tool.name)
	}
	p.checkQuiet()
}
