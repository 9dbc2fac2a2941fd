//go:build linux

package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A user saves a call in a file of the project, runs it on the command line, and opens it again.
func TestSavedCalls(t *testing.T) {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	path := filepath.Join(u.project, "dowel.calls.json")
	u.write(path, "{\n  // shared with the team\n  \"calls\": {}\n}\n")
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	p.do(chromedp.Navigate(u.url + "/console/tools/everything/tool/echo"))
	p.sees("Save…")
	p.fill("/message", "saved words")
	p.click(".calling button", "Save")
	p.until(`document.getElementById("dialog").open`)
	p.checkAccessibility("save", looks[0])
	p.click("#dialog button", "Save")
	p.sees("Saved calls")
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "// shared with the team") || !strings.Contains(string(text), "saved words") {
		t.Fatalf("%v: the file is\n%s", err, text)
	}
	if listed := u.run(false, "call", "--list-saved"); !strings.Contains(listed, "echo  everything.echo") {
		t.Errorf("dowel call --list-saved: %s", listed)
	}
	if got := u.run(false, "call", "--saved", "echo"); !strings.Contains(got, "saved words") || !strings.Contains(got, "calling everything.echo") {
		t.Errorf("dowel call --saved: %s", got)
	}
	if got := u.run(false, "call", "--saved", "echo", "message=other words"); !strings.Contains(got, "\nother words") {
		t.Errorf("dowel call --saved with an argument: %s", got)
	}
	p.fill("/message", "ghp_abcdefghijklmnopqrstuvwxyz0123456789")
	p.click(".calling button", "Save")
	p.click("#dialog button", "Save")
	p.sees("Save a secret?")
	if text := eval[string](p, `document.getElementById("dialog").textContent`); strings.Contains(text, "wxyz0123456789") {
		t.Errorf("the secret is shown: %s", text)
	}
	p.checkAccessibility("save a secret", looks[0])
	p.press(kb.Escape)
	p.until(`!document.getElementById("dialog").open`)
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "ghp_") {
		t.Errorf("%v: the secret is saved:\n%s", err, text)
	}
	if got := u.run(true, "call", "--saved", "ecoh"); !strings.Contains(got, "want echo") {
		t.Errorf("dowel call --saved with a wrong name: %s", got)
	}
	p.do(chromedp.Navigate(u.url + "/console/tools"))
	p.click(".calls a", "echo")
	p.until(`document.querySelector(".form textarea, .form input")?.value === "saved words"`)
	p.checkQuiet()
}
