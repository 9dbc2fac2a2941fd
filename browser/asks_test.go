//go:build linux

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// asked is a call of a client of the gateway that waits for an answer.
type asked struct {
	answer chan *mcp.ElicitResult // of the client's user
	result chan string
}

// ask makes a client call a tool of everything that asks for a name and an address. The client has
// shown the question when ask returns, unless it cannot be asked.
func (u *user) ask(name string, revision mcp.Revision, tool, message string, canAsk bool) *asked {
	u.t.Helper()
	a := &asked{answer: make(chan *mcp.ElicitResult, 1), result: make(chan string, 1)}
	shown := make(chan struct{}, 1)
	options := &client.Options{Info: mcp.Implementation{Name: name, Version: "1"}, Wire: client.Wire{Revision: revision}}
	if canAsk {
		options.Answers = client.Answers{ElicitURL: true, Elicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			shown <- struct{}{}
			select {
			case answer := <-a.answer:
				return answer, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}}
	}
	c := u.dial(options)
	arguments := json.RawMessage("{}")
	if message != "" {
		arguments, _ = json.Marshal(map[string]string{"message": message})
	}
	go func() {
		res, err := c.CallTool(u.t.Context(), mcp.CallToolParams{Name: tool, Arguments: arguments})
		a.result <- fmt.Sprintf("%+v %v", res, err)
	}()
	if canAsk {
		select {
		case <-shown:
		case text := <-a.result:
			u.t.Fatal(text)
		}
	}
	return a
}

const asksName = "everything__test_elicitation"

// openAsks opens the screen of questions of a dowel without questions.
func openAsks(t *testing.T) (*user, *tab) {
	t.Helper()
	u := newUser(t)
	u.configureServers(map[string]json.RawMessage{"everything": json.RawMessage(`"everything"`), "bad": json.RawMessage(entry(t, "hostile"))})
	u.start()
	p := u.openConsole()
	p.state("everything", "ready")
	p.state("bad", "ready")
	return u, p
}

// count waits until the navigation counts a number of open questions.
func (p *tab) count(n string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelector("[data-screen=asks] b").textContent === %q`, n))
}

// A user answers the questions of two clients with the mouse. A question that its client answers
// disappears. The other client gets the answer that was given here.
func TestAsksByMouse(t *testing.T) {
	u, p := openAsks(t)
	p.click("#rail a", "Asks")
	p.sees("No server asks anything now")
	legacy := u.ask("cursor", mcp.Revision20251125, asksName, "Which name is it?", true)
	modern := u.ask("claude-code", mcp.LatestRevision, asksName, "Which name shall it be?", true)
	p.count("◆2")
	p.sees("claude-code asks too")
	p.fill("/username", "ada")
	p.click(".ask-box button", "Answer")
	p.sees("missing required property")
	p.fill("/email", "ada@here.example")
	p.click(".ask-box button", "Answer")
	p.count("◆1")
	if text := <-legacy.result; !strings.Contains(text, "ada@here.example") {
		t.Error(text)
	}
	p.sees("answered here")
	modern.answer <- &mcp.ElicitResult{Action: mcp.ElicitDecline}
	p.count("")
	p.sees("declined in claude-code")
	p.sees("No server asks anything now")
	if text := <-modern.result; !strings.Contains(text, "decline") {
		t.Error(text)
	}
	p.checkOrigin() // the browser notes the refused answer in its console
}

// A user answers a question for a client that cannot ask, with the keyboard alone.
func TestAsksByKeyboard(t *testing.T) {
	u, p := openAsks(t)
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("ga")
	p.sees("No server asks anything now")
	eval[chromedp.Void](p, `document.querySelector("dowel-asks input[type=checkbox]").focus()`)
	p.press(" ")
	p.until(`fetch("/console/api/v1/asks", {headers: {Authorization: "Bearer " + localStorage.getItem("dowel.token")}}).then(r => r.json()).then(a => a.answersForAll)`)
	dumb := u.ask("old-editor", mcp.Revision20251125, asksName, "Who?", false)
	p.count("◆1")
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("j")
	p.until(`document.activeElement.className === "ask-box"`)
	p.press("e")
	p.until(`document.activeElement.tagName === "TEXTAREA"`)
	eval[chromedp.Void](p, `document.activeElement.value = ""`) // the driver types the key, too
	p.press("ada")
	p.press(kb.Tab)
	p.until(`document.activeElement.tagName === "BUTTON"`)
	p.press(kb.Tab)
	p.press("ada@here.example")
	p.do(chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(2))) // Ctrl
	p.count("")
	if text := <-dumb.result; !strings.Contains(text, "ada@here.example") {
		t.Error(text)
	}
	p.checkQuiet()
}

// A question that is hostile in each of its texts runs nothing. An address opens only if it is one
// of the web. A question of a console's call is in both places.
func TestHostileAsks(t *testing.T) {
	u, p := openAsks(t)
	u.ask(hostileText, mcp.LatestRevision, "bad__ask", "", true)
	p.do(chromedp.Navigate(u.url + "/console/asks"))
	p.count("◆1")
	p.sees("onerror")
	if title := eval[string](p, "document.title"); strings.Contains(title, "owned") {
		t.Error(title)
	}
	if eval[bool](p, `!!document.querySelector("dowel-asks img, dowel-asks script")`) {
		t.Error("text became markup")
	}
	for _, l := range looks {
		p.show(l)
		p.checkWidth("hostile asks " + l.name)
	}
	p.checkQuiet()
}
