package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tour is one conversation with the parts that docs/guide-chat.md shows: a real dowel on a
// terminal, real child servers, and the strict model server.

// tourPlan is the file that the tour reads and edits.
const tourPlan = "# Release 1.2\n\n1. Update the changelog\n2. Tag the commit\n3. Publish the archives\n"

// tourModel is what the model does in the tour.
const tourModel = `{"turns": [
	{"expect": ["Is the changelog up to date?"], "text": "It has no entry for 1.2.", "usage": {"input": 4150, "output": 12}},
	{"expect": ["What is left to do?"], "reasoning": "The plan is in a file. I read it first.", "calls": [{"name": "files__read", "arguments": {"path": "plan.md"}}], "usage": {"input": 4210, "output": 31}},
	{"expect": ["Tag the commit"], "text": "The plan has **three steps**:\n\n| step | who |\n|---|---|\n| Update the changelog | you |\n| Tag the commit | CI |\n| Publish the archives | CI |\n\nThe tag starts the rest:\n\n` + "```sh" + `\ngit tag v1.2.0\ngit push origin v1.2.0\n` + "```" + `", "usage": {"input": 4390, "cached": 4096, "output": 71}},
	{"expect": ["Add a step"], "calls": [{"name": "files__edit", "arguments": {"path": "plan.md", "edits": [{"old": "2. Tag the commit\n3. Publish", "new": "2. Run the tests\n3. Tag the commit\n4. Publish"}]}}], "usage": {"input": 4480, "cached": 4096, "output": 64}},
	{"expect": ["Run the tests"], "text": "Step 2 of plan.md runs the tests now.", "usage": {"input": 4690, "cached": 4480, "output": 12}},
	{"expect": ["Who publishes"], "calls": [{"name": "everything__test_elicitation", "arguments": {"message": "Who publishes the release?"}}], "usage": {"input": 4760, "cached": 4480, "output": 22}},
	{"expect": ["Ada"], "text": "Ada publishes it.", "usage": {"input": 4850, "cached": 4480, "output": 8}},
	{"expect": ["Run the slow check."], "calls": [{"name": "everything__slow", "arguments": {"seconds": 7}}], "usage": {"input": 4890, "cached": 4480, "output": 19}},
	{"expect": ["goes on at its server as a task"], "text": "The check runs. You hear of its end.", "usage": {"input": 4980, "cached": 4480, "output": 14}},
	{"expect": ["has ended"], "text": "The check took seven seconds.", "usage": {"input": 5090, "cached": 4480, "output": 9}}]}`

// tourStep is a step of the tour: keys, the texts that show their effect, and the name of the
// screen for the guide, if it has one.
type tourStep struct {
	keys  string
	shows []string
	name  string
}

// idleHint is in the last line if nothing runs.
const idleHint = "/help lists commands"

var tourSteps = []tourStep{
	{"", []string{"servers: files", "2 ready"}, "start"},
	{"What is left to do?\r", []string{"git push origin v1.2.0", "4k tokens", idleHint}, "reply"},
	{"\x0f", []string{"│ 3. Publish the archives"}, ""},
	{"\x1b[5~", []string{"PgDn: newer messages", "▾ files.read"}, "expanded"},
	{"\x0f\x1b[6~", []string{"▸ files.read", idleHint}, ""},
	{"Add a step for the tests.\r", []string{"Run files.edit?", "run it once"}, "approval"},
	{"y\r", []string{"Step 2 of plan.md", "5k tokens", idleHint}, "edited"},
	{"Who publishes it?\r", []string{"everything (", "send this to everything"}, ""},
	{"Ada\r", []string{"> Ada"}, "form"},
	{"ada@example.com\r\r", []string{"Ada publishes it.", "2 steps", idleHint}, ""},
	{"/undo\r", []string{"the model does not know", "5k tokens", idleHint}, "undo"},
	{"Run the slow check.\r", []string{"waiting for the task of everything.slow"}, ""},
	{"", []string{"The check took seven seconds.", "3 steps", idleHint}, "task"},
	{"/resume\r", []string{"dowel run: Is the changelog", "/resume ID shows"}, "resume"},
	{"/servers\r", []string{"files       ready", "everything  ready"}, ""},
	{"/re", []string{"/resources", "/resume"}, "completion"},
	{"\x03/quit\r", nil, ""},
}

// startTour saves a conversation of dowel run, and starts the chat of the tour. Slow calls become
// tasks.
func startTour(t *testing.T, columns, rows uint16) (*pty, *testUser) {
	t.Helper()
	p, _ := newScreenUser(t)
	m := startModel(t, tourModel)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"model": "qwen3", "models": {"qwen3": {"provider": "openai", "model": "qwen3", "url": %q}},
		"mcpServers": {"files": {"command": "dowel", "args": ["serve", "files"], "trustAnnotations": true}, "everything": {"command": "dowel", "args": ["serve", "everything"], "trustAnnotations": true}},
		"gateway": {"tasks": {"after": "1s"}}}`, m.url))
	if err := os.WriteFile(filepath.Join(p.project, "plan.md"), []byte(tourPlan), 0o600); err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	if err := os.Symlink(testBinary(t), filepath.Join(programs, "dowel")); err != nil {
		t.Fatal(err)
	}
	newCommand := func(words ...string) *exec.Cmd {
		cmd := p.newCommand(words...)
		cmd.Env = append(cmd.Env, "PATH="+programs)
		return cmd
	}
	if out, err := newCommand("run", "Is the changelog up to date?").CombinedOutput(); err != nil || !strings.Contains(string(out), "no entry for 1.2") {
		t.Fatalf("%v\n%s", err, out)
	}
	return startOnTerminal(t, newCommand("chat"), columns, rows), p
}

var (
	tourDuration = regexp.MustCompile(`\b(\d+\.\d+(ms|s)|\d+m\d\ds)\b`)
	tourAge      = regexp.MustCompile(`\b\d+[smh] {2,}`)
	tourWait     = regexp.MustCompile(`waiting for you (\d+m)?\d+s`)
	tourRunning  = regexp.MustCompile(`(?m)^(● ▸ .*) · (\d+m)?\d+s *$`)
	tourSession  = regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-f]{4}  \d{4}-\d\d-\d\d \d\d:\d\d`)
	tourAddress  = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// maskTour replaces the parts of a screen that differ between runs.
func maskTour(text string, p *testUser) []string {
	text = strings.NewReplacer(p.home, "~", p.project, "~/release").Replace(text)
	text = tourAge.ReplaceAllStringFunc(text, func(found string) string { return fmt.Sprintf("%-*s", len(found), "5s") })
	text = tourWait.ReplaceAllStringFunc(text, func(found string) string { return fmt.Sprintf("%-*s", len(found), "waiting for you") })
	text = tourSession.ReplaceAllString(text, "20261124-120000-1a2b  2026-11-24 12:00")
	text = tourRunning.ReplaceAllString(text, "$1 · running")
	text = tourDuration.ReplaceAllString(text, "0.1s")
	text = tourAddress.ReplaceAllString(text, "127.0.0.1:11434")
	rows := strings.Split(text, "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " \r")
	}
	return rows
}

// The screens of the tour are in testdata/screens, and docs/guide-chat.md shows them.
func TestChatTour(t *testing.T) {
	t.Parallel()
	terminal, p := startTour(t, 80, 24)
	var tape *recorder
	if *recordDemo {
		tape = &recorder{pty: terminal}
	}
	for _, step := range tourSteps {
		tape.typeText(terminal, step.keys)
		terminal.awaitScreen(step.shows...)
		tape.rest()
		if step.name != "" {
			compareScreenOnceSettled(t, "chat-"+step.name, 80, func() []string { return maskTour(terminal.screen(), p) })
		}
	}
	terminal.expectExit(0)
	<-terminal.ended
	terminal.checkTerminalRestored()
	tape.save(t)
	if text, err := os.ReadFile(filepath.Join(p.project, "plan.md")); err != nil || string(text) != tourPlan {
		t.Errorf("the edit was not undone: %s, %v", text, err)
	}
}
