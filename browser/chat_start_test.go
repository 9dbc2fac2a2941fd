//go:build linux

package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// configureModel adds a model that replies as a script says to the configuration.
func (u *user) configureModel(script string) {
	u.t.Helper()
	path := filepath.Join(u.home, "dowel", "dowel.json")
	text, err := os.ReadFile(path)
	var all map[string]any
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	all["models"] = map[string]any{"local": map[string]string{"provider": "openai", "model": "gpt-test", "url": u.startModel(script)}}
	if text, err = json.Marshal(all); err != nil {
		u.t.Fatal(err)
	}
	u.write(path, string(text))
}

// greeting is a turn that calls the tool echo, and the one after it.
const greeting = `{"text": "I greet everybody.", "calls": [{"name": "everything__echo", "arguments": {"message": "hello everybody"}}]}`

// newModelUser returns a user with a model and one server with untrusted annotations.
func newModelUser(t *testing.T, script string, words ...string) *user {
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`)})
	u.configureModel(script)
	u.start(words...)
	return u
}

// A conversation is begun with the mouse. Its call waits in place for an approval, the next message
// is sent, a turn is stopped, and the conversation continues in a terminal. The lists of a reply
// are drawn.
func TestChatStartsByMouse(t *testing.T) {
	u := newModelUser(t, `{"turns": [`+greeting+`,
		{"expect": ["hello everybody"], "text": "Done:\n\n- one **greeting**\n- nothing else\n\n1. First\n2. Second"},
		{"text": "Never shown.", "delayMs": 3600000}, {"text": "I am in the terminal now."}]}`)
	p := u.openConsole()
	p.state("everything", "ready")
	p.click("#rail a", "Chat")
	p.click(".begin", "New conversation")
	p.until(`[...document.querySelectorAll("select option")].some(o => o.value === "local")`)
	p.until(`document.activeElement.matches(".compose textarea")`)
	for _, l := range looks {
		p.show(l)
		p.checkWidth("new conversation " + l.name)
		p.capture("chat-new-" + l.name)
		p.checkAccessibility("new conversation "+l.name, l)
	}
	p.show(looks[0])
	p.press("Greet everybody")
	p.click(".compose button", "Send")
	p.sees("asks before it runs this tool")
	p.until(`location.pathname.startsWith("/console/chat/2")`)
	p.count("◆1")
	for _, l := range looks {
		p.show(l)
		p.checkWidth("approval in chat " + l.name)
		p.capture("chat-approval-" + l.name)
		p.checkAccessibility("approval in chat "+l.name, l)
	}
	p.show(looks[0])
	p.click(".ask-box button", "Allow")
	p.until(`document.querySelectorAll(".prose ul li").length === 2 && document.querySelector(".prose ol li:last-child")?.value === 2`)
	p.sees("allowed by you in the console")
	p.count("")
	p.until(`!document.querySelector(".compose").hidden`)
	eval[chromedp.Void](p, `document.querySelector(".compose textarea").focus()`)
	p.press("And now wait")
	p.press(kb.Enter)
	p.sees("The model works")
	p.click(".compose button", "Stop")
	p.until(`[...document.querySelectorAll(".compose button")].find(b => b.textContent === "Send")?.checkVisibility()`)
	p.checkQuiet()
	u.run(false, "chat", "--trace") // the conversation is the last one of this folder
	id := eval[string](p, `location.pathname.split("/").pop()`)
	cmd := u.command("chat", "--resume="+id, "--server", "everything")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "Where are you?")
	p.sees("I am in the terminal now.")
	p.until(`document.querySelector(".compose").hidden`)
	p.sees("live in dowel chat")
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	p.until(`!document.querySelector(".compose").hidden`)
}

// The same with the keyboard alone, on a phone: begin, refuse a call with a reason, and continue.
func TestChatStartsByKeyboard(t *testing.T) {
	u := newModelUser(t, `{"turns": [`+greeting+`, {"expect": ["not today"], "text": "Then I do not."}, {"text": "Still here."}]}`)
	p := newTab(t, u.url)
	p.show(looks[len(looks)-2])
	p.login(u)
	p.until(`!!document.querySelector("dowel-servers")`)
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("gh")
	p.until(`!!document.querySelector(".begin")`)
	p.press("n")
	p.until(`document.activeElement.matches(".compose textarea")`)
	p.press("Greet everybody")
	p.press(kb.Enter)
	p.sees("asks before it runs this tool")
	p.press(kb.Escape)
	p.until(`document.activeElement === document.body`)
	p.press("e")
	p.until(`document.activeElement.textContent === "Allow"`)
	for range 4 {
		p.press(kb.Tab)
	}
	p.until(`document.activeElement.matches(".refuse input")`)
	p.press("not today")
	p.press(kb.Enter)
	p.sees("Then I do not.")
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("e")
	p.until(`document.activeElement.matches(".compose textarea")`)
	p.press("And now?")
	p.press(kb.Enter)
	p.sees("Still here.")
	p.checkQuiet()
}

// A console that only reads shows conversations, and cannot begin or continue one.
func TestReadOnlyChat(t *testing.T) {
	u := newModelUser(t, `{"turns": [{"text": "Never."}]}`, "--console=read")
	u.chat(`{"turns": [{"text": "Hello."}]}`, "Hi\n", "--server", "everything")
	p := u.openConsole()
	p.do(chromedp.Navigate(u.url + "/console/chat"))
	p.click(".chat", "Hi")
	p.sees("Hello.")
	if eval[bool](p, `!!document.querySelector(".begin") || [...document.querySelectorAll(".compose")].some(c => c.checkVisibility())`) {
		t.Error("a message can be written")
	}
	for _, path := range []string{"/v1/chats", "/v1/chats/x/messages", "/v1/chats/x/stop"} {
		status := eval[int](p, `fetch("/console/api`+path+`", {method: "POST", headers: {Authorization: "Bearer " + localStorage.getItem("dowel.token"), "Content-Type": "application/json"}, body: '{"text": "hello"}'}).then(r => r.status)`)
		if status != 403 {
			t.Errorf("%s: %d", path, status)
		}
	}
}
