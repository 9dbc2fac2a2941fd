package cli

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

// F12 shows the frames of the current call: of servers of the command line, and of the running
// dowel.
func TestChatScreenWire(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{"named": {"--server", "everything"}, "running": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTestUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "first words"}}]}, {"text": "One."},
				{"calls": [{"name": "everything__echo", "arguments": {"message": "second words"}}]}, {"text": "Two."}]}`)
			u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
			p := startOnTerminal(t, u.newCommand(append([]string{"chat", "--approve", "all"}, words...)...), 80, 24)
			p.awaitScreen("1 ready")
			p.typeText("go\r")
			p.awaitScreen("One.")
			p.typeText("\x1b[24~")
			p.awaitScreen("wire · everything.echo · frame 2", "→", "request tools/call", `"text":"first words"}]`, "response tools/call ok")
			p.typeText("again\r")
			p.awaitScreen("Two.", "second words")
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the screen:\n%s", p.screen())
				}
			})
			polltest.Until(t, "the first call's frames are gone", func() bool {
				_, pane, _ := strings.Cut(p.screen(), "wire · ")
				return strings.Contains(pane, `"text":"second words"}]`) && !strings.Contains(pane, "first words") && strings.Contains(pane, "response tools/call ok")
			})
			p.typeText("\x04")
			p.expectExit(exit.OK)
		})
	}
}

// F12 shows the frames of the model's own call while another client calls the same tool.
func TestChatScreenWireOfOwnCall(t *testing.T) {
	t.Parallel()
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"calls": [{"name": "everything__test_elicitation", "arguments": {"message": "Own question?"}}]}, {"expect": ["Ada"], "text": "Done."}]}`)
	u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
	p := startOnTerminal(t, u.newCommand("chat", "--approve", "all"), 80, 24)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", p.screen())
		}
	})
	p.awaitScreen("1 ready")
	p.typeText("\x1b[24~go\r")
	p.awaitScreen("everything (", "wire · everything.test_elicitation · frame 2", "Own question?")
	call := []string{"call", "everything.test_elicitation", "message=Other question?", "--answer", "username=Bob", "--answer", "email=bob@example.com"}
	for range 2 {
		if out := u.runDowel(call...); out.code != exit.OK || !strings.Contains(out.stdout, "Bob") {
			t.Fatalf("the other client: %+v", out)
		}
	}
	p.typeText("Ada\rada@example.com\r\r")
	p.awaitScreen("Done.", "frame 4", `"username":"Ada"`)
	if screen := p.screen(); strings.Contains(screen, "Bob") || strings.Contains(screen, "Other") {
		t.Errorf("the frames of the other client's call are shown:\n%s", screen)
	}
	p.typeText("\x04")
	p.expectExit(exit.OK)
}
