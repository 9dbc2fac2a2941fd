package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/session"
)

// Ctrl-G writes the message in the user's editor. Esc twice takes the last message back.
func TestChatScreenEditor(t *testing.T) {
	state := ownState(t)
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nprintf 'from the %s editor' \"$(cat \"$1\")\" > \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EDITOR", editor)
	m := newModel(t, `{"turns": [{"expect": ["from the good editor"], "text": "First answer."}, {"expect": ["from the good editor!"], "text": "Second answer."}]}`)
	p := startScreen(t, m)
	p.typeText("good\x07")
	p.awaitScreen("› from the good editor")
	p.typeText("\r")
	p.awaitScreen("First answer.", "1 step")
	p.typeText("\x1b")
	p.awaitScreen("Esc again edits your last message")
	p.typeText("\x1b")
	p.awaitScreen("are taken back")
	p.typeText("!\r")
	p.awaitScreen("Second answer.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
	p.checkTerminalRestored()
	saved, err := filepath.Glob(filepath.Join(state, "dowel", "sessions", "*.jsonl"))
	if err != nil || len(saved) != 1 {
		t.Fatal(saved, err)
	}
	_, held, err := session.Load(saved[0])
	if err != nil || len(held.Messages) != 2 || held.Messages[0].Text() != "from the good editor!" {
		t.Errorf("the conversation holds %+v, %v", held, err)
	}
}

// A pasted path of an image, and a mention of one, send the image to the model.
func TestChatScreenImage(t *testing.T) {
	ownState(t)
	path := filepath.Join(t.TempDir(), "a picture.png")
	if err := os.WriteFile(path, pixel, 0o600); err != nil {
		t.Fatal(err)
	}
	m := newModel(t, `{"turns": [{"expectBody": ["data:image/png;base64,", "this one?"], "text": "One pixel."}]}`)
	p := startScreen(t, m)
	p.typeText("\x1b[200~" + strings.ReplaceAll(path, " ", `\ `) + "\x1b[201~")
	p.awaitScreen("picture.png\"")
	p.typeText("this one?\r")
	p.awaitScreen("added "+path[:20], "One pixel.")
	p.typeText("\x04")
	p.expectExit(exit.OK)
}

// An image in a result is shown by a terminal that says that it can, and is a link on all
// terminals. The link ends with the conversation.
func TestChatScreenPicture(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]string{"kitty": "\x1bP>|kitty(0.42.1)\x1b\\\x1b_Gi=16;OK\x1b\\", "tmux": "\x1bP>|tmux 3.5a\x1b\\\x1b_Gi=16;OK\x1b\\"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTestUser(t)
			m := startModel(t, `{"turns": [{"calls": [{"name": "everything__test_image_content", "arguments": {}}]}, {"text": "A picture."}]}`)
			u.writeFile(u.userFile(), `{"model": "m", "models": {"m": {"provider": "openai", "model": "m", "url": "`+m.url+`"}}, "mcpServers": {"everything": {"command": "`+testBinary(t)+`", "args": ["serve", "everything"]}}}`)
			cmd := u.newCommand("chat", "--approve", "all")
			cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `export TERM=xterm-256color; exec "$@"`, "sh"}, cmd.Args...)
			p := startOnTerminal(t, cmd, 80, 24)
			p.expect("\x1b[>q") // asks for the terminal's name
			if name == "tmux" {
				answers, _, _ = strings.Cut(answers, "\x1b_G")
			}
			p.typeText(answers)
			p.awaitScreen("1 ready")
			if name == "kitty" {
				p.expect("\x1b_Ga=q")
			}
			p.typeText("go\r")
			p.awaitScreen("A picture.", "png 1×1 · file:///")
			isShown := strings.Contains(p.output(), "\x1b_Ga=T,U=1,f=100,q=2,i=16,c=1,r=1") && strings.Contains(p.output(), "\U0010EEEE\u0305\u0305")
			if hasGraphics := strings.Contains(p.output(), "\x1b_G"); isShown != (name == "kitty") || hasGraphics != isShown {
				t.Errorf("the image is shown: %t, the output has graphics: %t", isShown, hasGraphics)
			}
			_, link, _ := strings.Cut(strings.Join(strings.Fields(p.screen()), ""), "file://")
			link, _, _ = strings.Cut(link, ".png")
			if _, err := os.Stat(link + ".png"); err != nil {
				t.Errorf("the link is to no file: %v", err)
			}
			p.typeText("\x04")
			p.expectExit(exit.OK)
			if _, err := os.Stat(filepath.Dir(link)); err == nil {
				t.Errorf("%s is still there", filepath.Dir(link))
			}
		})
	}
}
