//go:build linux

package browser

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/internal/modelserver"
)

// startModel serves a model that replies as a script says, and returns its URL.
func (u *user) startModel(script string) (url string) {
	u.t.Helper()
	parsed, err := modelserver.Parse([]byte(script))
	if err != nil {
		u.t.Fatal(err)
	}
	web := httptest.NewServer(modelserver.New(u.t.Error, parsed, modelserver.Chat))
	u.t.Cleanup(web.Close)
	return web.URL + "/v1"
}

// chat has a conversation with a model without a terminal. Each line is a message.
func (u *user) chat(script, lines string, words ...string) {
	u.t.Helper()
	cmd := u.command(append([]string{"chat", "--model", "gpt-test", "--base-url", u.startModel(script)}, words...)...)
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		u.t.Fatalf("dowel chat: %v\n%s", err, out)
	}
}

// chats has two conversations: a long one with calls that work, fail and are refused, and a short
// one.
func (u *user) chats() {
	u.t.Helper()
	u.chat(`{"turns": [{"text": "It is **sunny** in Lisbon, says `+"`weather`"+`.", "usage": {"input": 812, "output": 14}}]}`, "What is the weather in Lisbon?\n", "--server", "everything")
	u.chat(`{"turns": [
		{"text": "I look for the tool, and greet everybody.", "calls": [{"name": "everything__echo", "arguments": {"message": "hello everybody"}}, {"name": "everything__test_error_handling"}], "usage": {"input": 2140, "output": 61}},
		{"text": "## What happened\n\nThe greeting worked; the *other* tool **failed** on purpose:\n`+"\\n```go\\nfunc main() {\\n\\tpanic(\\\"no\\\")\\n}\\n```\\n"+`\nShall I go on?", "usage": {"input": 2410, "cached": 2048, "output": 75}},
		{"text": "You are welcome.", "usage": {"input": 2520, "output": 6}}]}`,
		"Greet everybody, then call a tool that fails, and tell me in a few words what happened and what you would do next\nThanks!\n", "--server", "everything", "--approve", "all")
}

const hostileWords = `<img src=x onerror=owned()> ‮evil [31mred`

// The conversations are read with the mouse: one is chosen, a call unfolds, and the exact request
// is shown with its tools. A conversation continues while it is shown.
func TestChatByMouse(t *testing.T) {
	u := newUser(t)
	u.configureServers(nil)
	u.start()
	p := u.openConsole()
	p.click("#rail a", "Chat")
	p.sees("No conversation is saved")
	u.chats()
	p.do(chromedp.Navigate(u.url + "/console/chat"))
	p.click(".chat", "Greet everybody")
	p.sees("what you would do next")
	p.sees("Model · step 1")
	p.sees("You are welcome.")
	p.click("summary", "everything.echo")
	p.sees("hello everybody")
	p.until(`document.querySelectorAll(".prose strong").length >= 2 && !!document.querySelector(".prose pre")`)
	p.click(".to-prompt", "request 2")
	p.sees("Exactly what the model got")
	p.click("#inspector summary", "tools")
	p.sees("everything__echo")
	p.until(`location.search.includes("request=2")`)
	u.chat(`{"turns": [{"text": "Here I am again."}]}`, "Are you there?\n", "--server", "everything", "--resume")
	p.sees("Here I am again.")
	p.checkQuiet()
}

// The same with the keyboard alone, on a phone.
func TestChatByKeyboard(t *testing.T) {
	u := newUser(t)
	u.configureServers(nil)
	u.start()
	u.chats()
	p := newTab(t, u.url)
	p.show(looks[len(looks)-1])
	p.login(u)
	p.until(`!!document.querySelector("dowel-servers")`)
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("gh")
	p.sees("Greet everybody")
	p.press("j")
	p.until(`document.activeElement.matches(".chat")`)
	p.press(kb.Enter)
	p.sees("Model · step 1")
	eval[chromedp.Void](p, "document.activeElement.blur()")
	for range 3 { // the user's words, the model's name, the first step
		p.press("j")
	}
	p.until(`document.activeElement.textContent.includes("I look for the tool")`)
	p.press("p")
	p.sees("Exactly what the model got")
	p.press(kb.Escape)
	p.until(`document.getElementById("inspector").hidden`)
	p.checkQuiet()
}

// A conversation that is hostile in each text, with 1 MiB in a result, runs nothing and is shown
// soon.
func TestHostileChat(t *testing.T) {
	u := newUser(t)
	u.configureServers(nil)
	u.start()
	word := fmt.Sprintf("%q", hostileWords)
	long := fmt.Sprintf("%q", strings.Repeat("<script>owned()</script>", 45_000))
	u.write(u.home+"/dowel/sessions/20260102-150405-evil.jsonl", `{"session":{"version":1,"id":"20260102-150405-evil","began":"2026-01-02T15:04:05Z","model":`+word+`,"folder":`+word+`}}
{"at":"2026-01-02T15:04:05Z","message":{"role":"user","content":[{"type":"text","text":`+word+`}]}}
{"at":"2026-01-02T15:04:05Z","prompt":{"system":`+word+`,"tools":[{"name":`+word+`,"description":`+word+`,"inputSchema":{}}],"same":1}}
{"at":"2026-01-02T15:04:06Z","message":{"role":"assistant","content":[{"type":"text","text":`+long+`},{"type":"tool_use","id":"1","name":`+word+`,"input":{"x":`+word+`}}]}}
{"at":"2026-01-02T15:04:06Z","event":"decided","data":{"call":"1","allowed":false,"by":`+word+`,"reason":`+word+`,"at":`+word+`}}
{"at":"2026-01-02T15:04:06Z","result":{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":`+long+`}]}}
`)
	if _, err := os.Stat(u.home + "/dowel/sessions"); err != nil {
		t.Fatal(err)
	}
	p := u.openConsole()
	p.until(`!!document.querySelector("dowel-servers")`) // the ticket is used
	p.do(chromedp.Navigate(u.url + "/console/chat/20260102-150405-evil?request=1"))
	p.sees("Exactly what the model got")
	for _, summary := range []string{"Instructions", "1 tool"} {
		p.click("#inspector summary", summary)
	}
	p.click(".call summary", "onerror")
	for range 2 {
		p.click(".turn button", "all of it")
	}
	p.until(`document.querySelector("dowel-chat").textContent.length > 1_000_000`)
	if eval[bool](p, `!!document.querySelector("dowel-chat img, dowel-chat script, #inspector img")`) {
		t.Error("text became markup")
	}
	if text := eval[string](p, `document.body.textContent`); strings.ContainsAny(text, "‮") {
		t.Error("hidden characters are not shown")
	}
	for _, l := range looks {
		p.show(l)
		p.checkWidth("hostile chat " + l.name)
	}
	p.checkQuiet()
}
