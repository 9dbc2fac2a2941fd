//go:build linux

package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

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
	p := u.openConsole()
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
	for range eval[int](p, `document.querySelectorAll("[aria-label='Files'] a.name").length + 1`) {
		p.press("j")
	}
	p.press(kb.Enter)
	p.until(`document.querySelector("#inspector")?.textContent.includes("Effective values")`)
	p.checkQuiet()
}

// typeIn writes a text into a field as a user who has selected its content.
func (p *tab) typeIn(selector, text string) {
	p.t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		p.t.Fatal(err)
	}
	p.until(`!!document.querySelector(` + strconv.Quote(selector) + `)`)
	eval[chromedp.Void](p, `(e => { e.focus(); e.value = `+string(quoted)+`; e.dispatchEvent(new Event("input", {bubbles: true})); })(document.querySelector(`+strconv.Quote(selector)+`))`)
}

// The browser and an editor change the same file: single values, the whole text and new entries.
// The smallest span changes, secrets stay where they are, and of two changes at once none is lost.
func TestConfigEdit(t *testing.T) {
	u := newUser(t)
	path := filepath.Join(u.home, "dowel", "dowel.json")
	text := `{
  // kept
  "mcpServers": {
    "store": {"command": "` + dowelPath + `", "args": ["serve", "kv"]},
    "search": {"url": "https://search.example/mcp", "headers": {"Authorization": "Bearer correct-horse-battery"}, "disabled": true}
  },
  "gateway": {"maxResult": 100000}
}
`
	u.write(path, text)
	file := func() string {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	expect := func(changed string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); file() != changed; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the file has\n%s\nwant\n%s", file(), changed)
			}
		}
		text = changed
	}
	u.start()
	p := u.openConsole()
	p.sees("store")
	p.click("#rail a", "Config")

	// one value
	p.click("a.name", "search")
	p.click("#inspector button[aria-label='Change url']", "Change…")
	p.typeIn("#ask-value", "https://search.example/v2")
	p.click("#dialog button", "Next…")
	p.sees("Save 2 changed lines?")
	p.capture("config-save")
	p.sees("https://search.example/v2")
	p.click("#dialog button", "Save")
	expect(strings.Replace(text, "/mcp", "/v2", 1))
	p.until(`document.querySelector("#inspector").textContent.includes("https://search.example/v2")`)

	// the text: dowel refuses a broken one
	p.click("#inspector a", "Edit the text")
	p.until(`document.querySelector(".editor textarea")?.value.includes("⟨secret-1⟩")`)
	shown := eval[string](p, `document.querySelector(".editor textarea").value`)
	if strings.Contains(shown, "correct-horse") {
		t.Error("the page has the secret")
	}
	p.typeIn(".editor textarea", shown[:len(shown)/2])
	p.click(".editor button", "Save…")
	p.sees("dowel cannot read this")
	p.click("#dialog button", "Back")
	p.typeIn(".editor textarea", strings.Replace(shown, `"disabled": true`, `"disabled": true, "timeout": "9s"`, 1))
	p.sees("Not saved yet.")
	p.capture("config-text")

	// another screen does not lose the text
	p.click("#rail a", "Wire")
	p.until(`location.pathname.endsWith("/wire")`)
	eval[chromedp.Void](p, `history.back()`)
	p.sees("Not saved yet.")

	// an editor changes another line meanwhile
	u.write(path, strings.Replace(text, `100000`, `200000`, 1))
	p.sees("Another program has changed the file")
	p.click(".editor button", "Save…")
	p.sees("The file has changed on disk")
	p.capture("config-conflict")
	p.click("#dialog button", "Merge")
	p.until(`document.querySelector(".editor textarea").value.includes("200000")`)
	p.click(".editor button", "Save…")
	p.click("#dialog button", "Save")
	expect(strings.NewReplacer(`100000`, `200000`, `"disabled": true`, `"disabled": true, "timeout": "9s"`).Replace(text))
	p.sees("As on disk.")

	// an editor changes the file, and the page follows
	text = strings.Replace(text, `"9s"`, `"8s"`, 1)
	u.write(path, text)
	p.until(`document.querySelector(".editor textarea").value.includes('"8s"')`)

	// a new server, and its end
	p.click("dowel-config a", "← All files")
	p.click("button", "Add a server…")
	p.typeIn("#ask-name", "notes")
	p.capture("config-add")
	p.typeIn("#ask-start", dowelPath)
	p.typeIn("#ask-args", "serve\neverything")
	p.click("#dialog button", "Next…")
	p.sees("notes: " + dowelPath + " serve everything")
	p.click("#dialog button", "Save")
	p.until(`[...document.querySelectorAll("a.name")].some(e => e.textContent === "notes")`)
	p.click("#rail a", "Servers")
	p.state("notes", "ready")
	p.click("#rail a", "Config")
	p.click("a.name", "notes")
	secret := filepath.Join(u.home, "dowel", "secrets", "notes", "KEY")
	u.write(secret, "canary\n")
	p.click("#inspector button", "Set a value…")
	p.typeIn("#ask-field", "env.KEY")
	p.typeIn("#ask-value", "${file:"+secret+"}")
	p.click("#dialog button", "Next…")
	p.click("#dialog button", "Save")
	p.until(`document.querySelector("#inspector").textContent.includes("env.KEY")`)
	p.click("#inspector button", "Remove…")
	p.sees("Removed: notes")
	p.sees("The secrets would be removed too")
	p.click("#dialog button", "Save")
	expect(text)
	p.until(`document.querySelector("#toast").textContent.includes("Removed the secrets")`)
	if _, err := os.Stat(secret); err == nil {
		t.Error("the secrets have outlived their server")
	}
	p.checkQuiet()
}
