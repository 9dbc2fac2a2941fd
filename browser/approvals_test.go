//go:build linux

package browser

import (
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// askApproval asks for an approval as an agent does. The answer arrives in the channel.
func (u *user) askApproval(a control.Approval) <-chan control.AskAnswer {
	u.t.Helper()
	running, answer := control.NewClient(control.Path(u.home, filepath.Join(u.home, "dowel"))), make(chan control.AskAnswer, 1)
	go func() {
		got, err := running.AskApproval(u.t.Context(), a)
		if err != nil && u.t.Context().Err() == nil {
			u.t.Error(err)
		}
		answer <- got
	}()
	return answer
}

// edit is an approval of a call that changes a file.
func edit(key string) control.Approval {
	return control.Approval{Key: key, Program: "dowel chat", Session: "20261128-061052-55a8", Server: "files", Tool: "files.edit", Effect: "destructive",
		Arguments: `{"path": "/home/ada/notes/release.md", "edits": [{"oldText": "2. Tag the commit", "newText": "2. Run the tests"}]}`}
}

// Approvals of agents are answered with the mouse and with the keyboard: for the session, with a
// reason, and in the agent's terminal. One that is hostile in each text runs nothing.
func TestApprovals(t *testing.T) {
	u := newUser(t)
	u.configureServers(nil)
	u.start()
	p := u.openConsole()
	p.click("#rail a", "Asks")
	p.sees("no agent waits for an approval")
	first := u.askApproval(edit("one"))
	p.sees("asks before it runs this tool")
	p.sees("2. Run the tests")
	p.click(".ask-box button", "Allow this tool")
	if got := <-first; got.Action != mcp.ElicitAccept || got.Scope != control.ScopeTool {
		t.Errorf("%+v", got)
	}
	p.sees("allowed here")

	second := u.askApproval(edit("two"))
	p.count("◆1")
	p.until(`document.querySelectorAll(".ask-box").length === 1`) // drawn after the count
	eval[chromedp.Void](p, "document.activeElement.blur()")
	p.press("j")
	p.until(`document.activeElement.className === "ask-box"`)
	p.press("e")
	p.until(`document.activeElement.textContent === "Allow"`)
	for range 4 {
		p.press(kb.Tab)
	}
	p.until(`document.activeElement.tagName === "INPUT"`)
	p.press("not today")
	p.press(kb.Enter)
	if got := <-second; got.Action != mcp.ElicitDecline || got.Reason != "not today" {
		t.Errorf("%+v", got)
	}
	p.sees("refused here")

	u.askApproval(edit("three"))
	p.count("◆1")
	running := control.NewClient(control.Path(u.home, filepath.Join(u.home, "dowel")))
	if wasOpen, err := running.CloseApproval(t.Context(), "three", mcp.ElicitAccept); err != nil || !wasOpen {
		t.Error(wasOpen, err)
	}
	p.count("")
	p.sees("allowed in dowel chat")

	twice := edit("twice")
	twice.Arguments = `{"path": "/etc/shadow", "path": "/tmp/harmless"}`
	u.askApproval(twice)
	p.sees("/tmp/harmless")
	if !eval[bool](p, `document.querySelector("dowel-asks").textContent.includes("/etc/shadow")`) {
		t.Error("a name that is there twice hides a value")
	}
	if wasOpen, err := running.CloseApproval(t.Context(), "twice", mcp.ElicitDecline); err != nil || !wasOpen {
		t.Error(wasOpen, err)
	}

	u.askApproval(control.Approval{Program: hostileText, Server: hostileText, Tool: hostileText, Effect: hostileText, Arguments: `{"x": "<img src=x onerror=owned()>"}`, Changes: []string{hostileText}, Message: hostileText})
	p.count("◆1")
	p.sees("onerror")
	if eval[bool](p, `!!document.querySelector("dowel-asks img, dowel-asks script")`) {
		t.Error("text became markup")
	}
	for _, l := range looks {
		p.show(l)
		p.checkWidth("hostile approval " + l.name)
		p.checkAccessibility("hostile approval "+l.name, l)
	}
	p.show(looks[0])
	p.checkOrigin()
}
