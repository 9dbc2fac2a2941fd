package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// A server's form with a field of each kind, and its page, on the full screen.
func TestChatScreenForms(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [
		{"calls": [{"name": "cli-test__form"}]},
		{"expect": ["accept {\"name\":\"Ada\",\"age\":30,\"agree\":true,\"colour\":\"#0f0\",\"days\":[\"mon\",\"wed\"]}"], "text": "It is filled in."},
		{"calls": [{"name": "cli-test__visit", "arguments": {"url": "https://login.example.com/x?a=1"}}]},
		{"expect": ["thank you"], "text": "It was visited."},
		{"calls": [{"name": "cli-test__visit", "arguments": {"url": "https://login.example.com/again"}}]},
		{"expect": ["decline"], "text": "It was not visited."}]}`)
	p := startScreen(t, m, "--approve", "all")
	p.typeText("form\r")
	p.awaitScreen("Who are you?", "Your name")
	p.typeText("A\r")
	p.awaitScreen("must be at least 2")
	p.typeText("\x1b[Z") // shift-Tab
	p.typeText("da\r")
	for _, step := range []struct{ shows, keys string }{{"30", "\r"}, {"agree", "y\r"}, {"Green", "2\r"}, {"wed", "13\r"}, {"mail", "\r"}, {"send this to cli-test", "\r"}} {
		p.awaitScreen(step.shows)
		p.typeText(step.keys)
	}
	p.awaitScreen("It is filled in.")
	p.typeText("page\r")
	p.awaitScreen("visit a page", "https://login.example.com/x?a=1", "Nothing has been opened")
	p.typeText("m\r")
	p.awaitScreen("It was visited.")
	p.typeText("again\r")
	p.awaitScreen("https://login.example.com/again", "I open it myself") // the call shows the URL before the form
	p.typeText("n\r")
	p.awaitScreen("It was not visited.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}

// On the full screen, the user refuses a call with a reason, and changes the arguments of another
// one.
func TestChatScreenRefusesAndEdits(t *testing.T) {
	ownState(t)
	m := newModel(t, `{"turns": [`+addCall("1", "2")+`, {"expect": ["refused: use a calculator"], "text": "I see."}, `+
		addCall("1", "2")+`, {"expect": ["42"], "text": "It is the answer."}]}`)
	p := startScreen(t, m)
	p.typeText("add\r")
	p.awaitScreen("Run cli-test.add?", "run it once")
	p.typeText("n\r")
	p.awaitScreen("Why not?")
	p.typeText("use a calculator\r")
	p.awaitScreen("I see.", "not run: the user refused")
	p.typeText("again\r")
	p.awaitScreen("Run cli-test.add?", "change the arguments first")
	p.typeText("e\r")
	p.awaitScreen(`{"a":1,"b":2}`)
	p.typeText(strings.Repeat("\x7f", len(`{"a":1,"b":2}`)) + `{"a":40,"b":2}` + "\r")
	p.awaitScreen("a: 40", "run it once")
	p.typeText("y\r")
	p.awaitScreen("It is the answer.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
}
