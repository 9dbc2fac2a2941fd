package interop

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
)

// Tests of dowel chat on a terminal with five servers of other authors and the strict model server.

// chatServers are the servers of the chat: four from npm and one on the official Go SDK.
const chatServers = `"mcpServers": {
    "everything": {"command": %q},
    "filesystem": {"command": %q, "args": [%[3]q]},
    "memory": {"command": %[4]q, "env": {"MEMORY_FILE_PATH": %[5]q}},
    "thinking": {"command": %[6]q},
    "gosdk": {"command": %[7]q}
  }`

// chatScript calls a tool of each server, one after the other, then calls two that are stopped.
const chatScript = `{"turns": [
  {"expect": ["Call all five"], "calls": [{"name": "everything__echo", "arguments": {"message": "one"}}]},
  {"expect": ["Echo: one"], "calls": [{"name": "filesystem__list_directory", "arguments": {"path": "FOLDER"}}]},
  {"expect": ["note.txt"], "calls": [{"name": "memory__search_nodes", "arguments": {"query": "three"}}]},
  {"expect": ["relations"], "calls": [{"name": "thinking__sequentialthinking", "arguments": {"thought": "four", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}}]},
  {"expect": ["thoughtNumber"], "calls": [{"name": "gosdk__test_simple_text", "arguments": {}}]},
  {"expect": ["simple text"], "text": "All five have answered."},
  {"expect": ["Ask me"], "calls": [{"name": "everything__trigger-elicitation-request", "arguments": {}}]},
  {"expect": ["Take long"], "calls": [{"name": "everything__trigger-long-running-operation", "arguments": {"duration": 600, "steps": 600}}]},
  {"expect": ["Goodbye"], "text": "The chat continues after a stop."}]}`

// chatTerminal is dowel chat on a terminal.
type chatTerminal struct {
	t     *testing.T
	keys  io.Writer
	width int
	lines int

	mu   sync.Mutex // guards said
	said strings.Builder
}

// Write implements [io.Writer] for the output of the terminal.
func (c *chatTerminal) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(text)
}

// screen returns the text on the terminal.
func (c *chatTerminal) screen() string {
	c.mu.Lock()
	said := c.said.String()
	c.mu.Unlock()
	terminal := vt.NewEmulator(c.width, c.lines)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(io.Discard, terminal) // ends when the pipe of the answers is closed
	}()
	_, _ = io.WriteString(terminal, said) // an emulator in memory
	text := terminal.String()
	_ = terminal.InputPipe().(io.Closer).Close() // a pipe in memory
	<-answers
	return text
}

// awaitScreen waits until the screen shows all texts.
func (c *chatTerminal) awaitScreen(texts ...string) {
	c.t.Helper()
	deadline := time.Now().Add(runLimit)
	for _, text := range texts {
		for !strings.Contains(c.screen(), text) {
			if time.Now().After(deadline) {
				c.t.Fatalf("the screen does not show %q:\n%s", text, c.screen())
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// awaitScreenWithout waits until the screen does not show the text.
func (c *chatTerminal) awaitScreenWithout(text string) {
	c.t.Helper()
	deadline := time.Now().Add(runLimit)
	for strings.Contains(c.screen(), text) {
		if time.Now().After(deadline) {
			c.t.Fatalf("the screen still shows %q:\n%s", text, c.screen())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *chatTerminal) typeText(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.keys, text); err != nil {
		c.t.Fatal(err)
	}
}

// Every server becomes ready and is called in one conversation, with an approval, a form and a
// stop, at three sizes and in both themes.
func TestChatWithFiveServers(t *testing.T) {
	for _, tt := range []struct {
		width, lines int
		theme        string
	}{{80, 24, "dark"}, {120, 40, "light"}, {200, 50, "dark"}} {
		t.Run(fmt.Sprintf("%dx%d %s", tt.width, tt.lines, tt.theme), func(t *testing.T) {
			t.Parallel()
			chatWithFiveServers(t, tt.width, tt.lines, tt.theme)
		})
	}
}

func chatWithFiveServers(t *testing.T, width, lines int, theme string) {
	w := newWorker(t, "openai", []byte(chatScript))
	path := filepath.Join(w.home, ".config", "dowel", "dowel.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), `"mcpServers"`)
	w.write(path, head+fmt.Sprintf(chatServers, npmPath(t, "mcp-server-everything"), npmPath(t, "mcp-server-filesystem"), w.project, npmPath(t, "mcp-server-memory"),
		filepath.Join(w.home, "memory.json"), npmPath(t, "mcp-server-sequential-thinking"), binaryPath(t, "everything-server"))+"\n}\n")
	w.write(filepath.Join(w.project, "note.txt"), "a note\n")

	ctx, cancel := context.WithTimeout(context.Background(), 3*runLimit)
	defer cancel()
	cmd := w.process(ctx, "chat", "--model", "scripted")
	program := cmd.Path
	cmd.Path = "/usr/bin/script" // of Debian's bsdutils: it gives the program a terminal
	cmd.Args = []string{"script", "-qefc", fmt.Sprintf("stty cols %d rows %d; exec '%s' chat --model scripted", width, lines, program), "/dev/null"}
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "SHELL=/bin/sh")
	keys, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &chatTerminal{t: t, keys: keys, width: width, lines: lines}
	cmd.Stdout, cmd.Stderr = c, c
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // fails if it has ended
	c.awaitScreen("5 ready")
	c.typeText("/theme " + theme + "\r")
	c.awaitScreen("theme " + theme)
	c.typeText("Call all five\r")
	for _, tool := range []string{"everything.echo", "filesystem.list_directory", "memory.search_nodes", "thinking.sequentialthinking", "gosdk.test_simple_text"} {
		c.awaitScreen("Run "+tool+"?", "run it once")
		c.typeText("y\r")
	}
	c.awaitScreen("All five have answered.", "/help lists commands")
	c.typeText("/approve all\r")
	c.awaitScreen("all: every tool runs without a question")
	c.typeText("Ask me\r")
	c.awaitScreen("waiting for you")
	c.typeText("\x03") // at the form
	c.awaitScreen("stopped; the conversation until then is kept")
	c.typeText("Take long\r")
	c.awaitScreen("everything.trigger-long-running-operation", "/600") // its progress
	c.typeText("\x1b")                                                 // during the call
	c.awaitScreenWithout("running tools")                              // keys right after Esc would belong to it
	c.typeText("Goodbye\r")
	c.awaitScreen("The chat continues after a stop.")
	c.typeText("\x04")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the chat ends with %v:\n%s", err, c.screen())
	}
	w.expectPlayed()
}
