package cli

import (
	"strings"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// startWithImage starts a chat whose first reply has an image, in a terminal that answers the
// questions about itself.
func startWithImage(t *testing.T, variables, answers string) *pty {
	t.Helper()
	u := newTestUser(t)
	m := startModel(t, `{"turns": [{"calls": [{"name": "everything__test_image_content", "arguments": {}}]}, {"text": "A picture."}]}`)
	u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
	cmd := u.newCommand("chat", "--approve", "all")
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `unset TMUX STY TERM_PROGRAM LC_TERMINAL; export TERM=xterm-256color ` + variables + `; exec "$@"`, "sh"}, cmd.Args...)
	p := startOnTerminal(t, cmd, 80, 24)
	p.expect("\x1b[>q") // asks for the terminal's name
	p.typeText(answers)
	p.awaitScreen("1 ready")
	p.typeText("go\r")
	p.awaitScreen("A picture.", "png 1×1")
	return p
}

// Each terminal shows an image alone by its own protocol, and the conversation comes back. The
// terminal's answers never reach the input.
func TestChatScreenOpensImage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ variables, answers, image string }{
		"iTerm2":             {"", "\x1bP>|iTerm2 3.5.1\x1b\\\x1b[?62;4c", "\x1b]1337;File=inline=1;"},
		"iTerm2 by variable": {"TERM_PROGRAM=iTerm.app", "\x1b[?62;22c", "\x1b]1337;File=inline=1;"},
		"WezTerm":            {"TERM_PROGRAM=WezTerm", "\x1bP>|WezTerm 20240203\x1b\\\x1b[?65;4;6;18;22c", "\x1b]1337;File=inline=1;"},
		"sixel":              {"", "\x1bP>|XTerm(390)\x1b\\\x1b[?64;1;2;4;6;22c\x1b[6;20;10t", "\x1bP0;1q\"1;1;1;1#"},
		"kitty":              {"", "\x1bP>|kitty(0.42.1)\x1b\\\x1b[?62;c\x1b_Gi=16;OK\x1b\\", "\x1b_Ga=T,f=100,q=2,C=1,c=1,r=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startWithImage(t, tt.variables, tt.answers)
			p.awaitScreen("/open 1")
			for _, keys := range []string{"/open\r", "\x1b[13~"} { // F3
				p.typeText(keys)
				p.expect(tt.image)
				p.expect("press a key")
				p.typeText("q")
				p.expect("\x1b[?1049h") // the conversation has the screen again
				p.awaitScreen("A picture.")
			}
			if input := lineWith(p.screen(), "›"); strings.TrimSpace(input) != "›" {
				t.Errorf("the input is %q", input)
			}
			p.typeText("\x04")
			p.expectExit(exit.OK)
			<-p.ended
			p.checkTerminalRestored()
		})
	}
}

// lineWith returns the last line of a screen that begins with a mark.
func lineWith(screen, mark string) (found string) {
	for line := range strings.Lines(screen) {
		if strings.HasPrefix(line, mark) {
			found = line
		}
	}
	return found
}

// A terminal without a protocol, or behind tmux, gets the link and no image.
func TestChatScreenOpensNoImage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ variables, answers, text string }{
		"xterm": {"", "\x1bP>|XTerm(390)\x1b\\\x1b[?64;1;2;6;22c", "this terminal shows no images: open file://"},
		"quiet": {"", "", "this terminal shows no images: open file://"},
		"tmux":  {"TMUX=/tmp/tmux LC_TERMINAL=iTerm2", "\x1bP>|tmux 3.5a\x1b\\\x1b[?1;2;4c", "tmux and screen show no images: open file://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startWithImage(t, tt.variables, tt.answers)
			if strings.Contains(p.screen(), "/open 1") {
				t.Error("the image can be opened")
			}
			p.typeText("/open 1\r")
			p.awaitScreen(tt.text)
			p.typeText("/open 7\r")
			p.awaitScreen("image 7 is not here")
			for _, sequence := range []string{"\x1bP0;1q", "\x1b]1337;", "\x1b_G"} {
				if strings.Contains(p.output(), sequence) {
					t.Errorf("the terminal gets %q", sequence)
				}
			}
			p.typeText("\x04")
			p.expectExit(exit.OK)
		})
	}
}

// A signal ends the program while an image is shown, and the terminal is as it was.
func TestChatScreenSignalEndsImage(t *testing.T) {
	t.Parallel()
	p := startWithImage(t, "TERM_PROGRAM=iTerm.app", "")
	p.typeText("/open\r")
	p.expect("press a key")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.expectExit(128 + int(syscall.SIGTERM))
	<-p.ended
	p.checkTerminalRestored()
}
