//go:build linux

package browser

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/mcp"
)

// traffic makes clients of both eras call tools that work and that fail.
func (u *user) traffic() {
	u.t.Helper()
	for range 2 {
		u.run(false, "call", "github.create_issue", "Repository=dowel/dowel", "Title=The wire shows both legs", "Body=As it should.")
	}
	u.run(true, "call", "github.delete_repository", "Repository=dowel/dowel")
	u.run(false, "call", "everything.echo", "message=hello")
	u.run(false, "call", "github.search_code", "Query=TODO", "--revision", "2025-11-25")
}

// open starts dowel with servers in many states, and a page that is logged in.
func openConsole(t *testing.T) (*user, *tab) {
	t.Helper()
	u := newUser(t)
	u.configure()
	u.start()
	u.traffic()
	p := u.openConsole()
	p.sees("JIRA_API_TOKEN")
	return u, p
}

// violation is a broken rule of accessibility.
type violation struct {
	ID, Help string
	Nodes    []struct {
		HTML           string `json:"html"`
		FailureSummary string `json:"failureSummary"`
	}
}

// checkAccessibility runs axe-core on the page. In the first look it checks all rules, and in
// the others the rules about colours and sizes.
func (p *tab) checkAccessibility(where string, l look) {
	p.t.Helper()
	p.until(`!document.getAnimations().some(a => a instanceof CSSTransition)`) // colours that change have no contrast yet
	only := ""
	if l != looks[0] {
		only = `, runOnly: ["color-contrast", "scrollable-region-focusable"]`
	}
	source, err := os.ReadFile(axePath)
	if err != nil {
		p.t.Fatal(err)
	}
	eval[chromedp.Void](p, string(source)+";0")
	found := eval[string](p, `axe.run(document, {resultTypes: ["violations"]`+only+`}).then(r => JSON.stringify(r.violations))`)
	var all []violation
	if err := json.Unmarshal([]byte(found), &all); err != nil {
		p.t.Fatal(err)
	}
	for _, v := range all {
		p.t.Errorf("%s: %s: %s: %.300s\n%s", where, v.ID, v.Help, v.Nodes[0].HTML, v.Nodes[0].FailureSummary)
	}
}

// checkLooks checks in every look that the page is accessible and fits into the window, and
// captures it.
func (p *tab) checkLooks(where string) {
	p.t.Helper()
	for _, l := range looks {
		p.show(l)
		p.checkWidth(where + " " + l.name)
		p.capture(where + "-" + l.name)
		p.checkAccessibility(where+" "+l.name, l)
	}
	p.show(looks[0])
}

// checkWidth fails the test if the page is wider than the window.
func (p *tab) checkWidth(where string) {
	p.t.Helper()
	if wide := eval[string](p, `(() => { const w = document.documentElement.clientWidth;
		return [...document.querySelectorAll("body *:not(.sr, .skip, .row *, .row, .probe)")].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > w + 1).map(e => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).slice(0, 5).join("; "); })()`); wide != "" {
		p.t.Errorf("%s: wider than the window: %s", where, wide)
	}
}

// Each screen is accessible in each look, and fits into the window. With DOWEL_SHOTS it writes the
// screenshots of docs/console.md.
func TestScreens(t *testing.T) {
	u, p := openConsole(t)
	for _, screen := range []struct {
		name, path, ready string
		then              func()
	}{
		{"servers", "/console/servers", "idle, seen", nil},
		{"server", "/console/servers/jira", "Starts", nil},
		{"doctor", "/console/servers/jira?tab=doctor", "Walk through", func() {
			p.click("button", "Walk through")
			p.sees("Walk again")
		}},
		{"output", "/console/servers/github?tab=output", "ready, 61", nil},
		{"trust", "/console/servers", "team-db", func() {
			p.click("button", "What would run")
			p.sees("NODE_OPTIONS")
		}},
		{"tools", "/console/tools/tracker/tool/file_report", "One line that says", func() {
			p.fill("/title", "The wire shows one leg")
			p.fill("/steps/0/do", "open")
			p.clickIn("/place", "fill in")
			p.clickIn("/assignee", "fill in")
			p.fill("/number", "many")
			p.sees("must be an integer")
			p.click(".run", "Run")
			p.sees("Run sends it")
			p.until(`!!document.querySelector(".calls li")`)
		}},
		{"result", "/console/tools/everything/tool/test_multiple_content_types", "Returns text", func() {
			p.click(".run", "Run")
			p.until(`!!document.querySelector(".binary img")`)
		}},
		{"asks-none", "/console/asks", "No server asks anything now", nil},
		{"asks", "/console/asks", "No server asks anything now", func() {
			answered := u.ask("claude-code", mcp.LatestRevision, asksName, "Which account shall the release notes name?", true)
			answered.answer <- &mcp.ElicitResult{Action: mcp.ElicitDecline}
			<-answered.result
			u.ask("cursor", mcp.Revision20251125, "everything__test_elicitation_sep1330_enums", "", true)
			u.ask("an-editor-with-a-rather-long-name", mcp.LatestRevision, "everything__ask_url", "", true)
			p.sees("an-editor-with-a-rather-long-name asks too")
			p.sees("declined in claude-code")
		}},
		{"approval", "/console/asks", "an-editor-with-a-rather-long-name", func() {
			u.askApproval(edit("shown"))
			p.sees("asks before it runs this tool")
		}},
		{"question", "/console/tools/everything/tool/test_elicitation_sep1330_enums", "each kind of choice", func() {
			p.click(".run", "Run")
			p.until(`!!document.querySelector(".ask-box .form")`)
		}},
		{"chat-none", "/console/chat", "No conversation is saved", nil},
		{"chat", "/console/chat", "No conversation is saved", func() {
			u.chats()
			p.do(chromedp.Navigate(u.url + "/console/chat"))
			p.click(".chat", "Greet everybody")
			p.click("summary", "test_error_handling")
			p.sees("Result")
		}},
		{"chat-request", "/console/chat", "Greet everybody", func() {
			p.click(".chat", "Greet everybody")
			p.click(".to-prompt", "request 2")
			p.click("#inspector summary", "tools")
			p.sees("everything__echo")
		}},
		{"chat-filter", "/console/chat?q=nothing+such", "No conversation has these words", nil},
		{"config", "/console/config", "Files, the first wins", nil},
		{"config-entry", "/console/config/search", "SEARCH_TOKEN", func() { p.sees("Effective values") }},
		{"config-text", "/console/config", "Files, the first wins", func() { p.click("a.name", "dowel.json"); p.sees("← All files") }},
		{"config-none", "/console/config?q=nothing+such", "No entry has these words", nil},
		{"audit", "/console/audit", "delete_repository", func() {
			p.click(".row", "delete_repository")
			p.sees("Outcome")
		}},
		{"audit-none", "/console/audit?q=nothing+such", "No record matches", nil},
		{"search", "/console/tools?q=repository", "delete_repository", nil},
		{"help", "/console/wire?q=tool:create_issue", "create_issue", func() {
			p.click("#help-button", "?")
			p.sees("Keys and filter")
		}},
		{"wire", "/console/wire?q=method:tools/call", "search_code", func() {
			p.click(".row", "delete_repository")
			p.sees("Started")
			eval[chromedp.Void](p, "document.querySelector('.list').focus()")
			p.press(kb.ArrowRight)
			p.until("document.querySelector('.row.child')")
		}},
		{"messages", "/console/wire?rows=frames&q=tool:create_issue", "create_issue", func() {
			p.click(".row", "create_issue")
			p.sees("JSON")
		}},
		{"failed", "/console/wire?q=status:tool-error", "delete_repository", nil},
		{"none", "/console/wire?q=server:nothing", "matches this filter", nil},
		{"wrong", "/console/wire?q=sever:x", "does not understand", nil},
	} {
		p.do(chromedp.Navigate(u.url + screen.path))
		p.sees(screen.ready)
		if screen.then != nil {
			screen.then()
		}
		for _, l := range looks {
			p.show(l)
			p.until("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
			p.until("Promise.allSettled(document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished))") // colours of a button
			where := screen.name + " " + l.name
			p.checkWidth(where)
			p.checkAccessibility(where, l)
			p.capture(screen.name + "-" + l.name)
		}
		p.show(looks[0])
	}
	p.checkQuiet()
}

// A page without a token has no data, and says how to log in.
func TestLoggedOut(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"secretname": json.RawMessage(`"kv"`)})
	u.start()
	p := newTab(t, u.url)
	for _, l := range looks {
		p.show(l)
		p.do(chromedp.Navigate(u.url + "/console/wire"))
		p.sees("Not logged in")
		p.checkAccessibility(l.name, l)
		p.capture("login-" + l.name)
	}
	if text := eval[string](p, "document.documentElement.outerHTML"); strings.Contains(text, "secretname") {
		t.Error("the page has data")
	}
	p.checkQuiet()
	p.login(u)
	p.sees("secretname")
	if at := eval[string](p, "location.href"); strings.Contains(at, "login") {
		t.Errorf("the ticket stays in the address: %s", at)
	}
	p.do(chromedp.Navigate("about:blank"))
	used := u.loginURL()
	for range 2 {
		p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(used))
		p.until("document.body.textContent.includes('secretname') || document.body.textContent.includes('used already')")
	}
	p.sees("used already")
}
