package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
)

var updateScreens = flag.Bool("update", false, "write testdata/screens anew")

// screenWidths are the widths of the terminals in testdata/screens.
var screenWidths = []uint16{80, 120}

// checkScreen compares the rows on a terminal with the file of this name and width.
func checkScreen(t *testing.T, name string, columns uint16, rows []string) {
	t.Helper()
	for _, row := range rows {
		if n := utf8.RuneCountInString(row); n >= int(columns) {
			t.Errorf("a row of %s has %d characters: %s", name, n, row)
		}
	}
	compareScreen(t, name, columns, rows)
}

// compareScreen is checkScreen for rows that may reach the last column.
func compareScreen(t *testing.T, name string, columns uint16, rows []string) {
	t.Helper()
	got := strings.Join(rows, "\n") + "\n"
	path := filepath.Join("testdata", "screens", fmt.Sprintf("%s-%d.txt", name, columns))
	if *updateScreens {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", path, got, want)
	}
}

// compareScreenOnceSettled is compareScreen for a program that still draws. It reads the rows until
// they equal the file, and fails with the last ones after [polltest.Limit]. With -update it writes
// the rows of a second later.
func compareScreenOnceSettled(t *testing.T, name string, columns uint16, readRows func() []string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", "screens", fmt.Sprintf("%s-%d.txt", name, columns)))
	limit := polltest.Limit
	if *updateScreens {
		limit = time.Second
	}
	rows := readRows()
	for end := time.Now().Add(limit); err == nil && strings.Join(rows, "\n")+"\n" != string(want) && time.Now().Before(end); rows = readRows() {
		time.Sleep(10 * time.Millisecond)
	}
	compareScreen(t, name, columns, rows)
}

var controlSequence = regexp.MustCompile(`^\x1b\[([0-9;?]*)([A-Za-z])`)

// renderScreen returns the rows of a terminal after the output: first the rows that have scrolled
// off the top, then the rows that it shows. It knows the control sequences that dowel uses.
func renderScreen(output string, columns, height int) []string {
	rows, x, y := []string{""}, 0, 0
	down := func() {
		if y++; y == len(rows) {
			rows = append(rows, "")
		}
	}
	for output != "" {
		if m := controlSequence.FindStringSubmatch(output); m != nil {
			output = output[len(m[0]):]
			switch n, _ := strconv.Atoi(m[1]); m[2] {
			case "A":
				y = max(y-max(n, 1), len(rows)-height, 0)
			case "J":
				rows = append(rows[:y], cutRow(rows[y], x))
			case "K":
				rows[y] = cutRow(rows[y], x)
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(output)
		output = output[n:]
		switch r {
		case '\n':
			down()
		case '\r':
			x = 0
		default:
			if x == columns {
				x = 0
				down()
			}
			row := []rune(rows[y] + strings.Repeat(" ", max(0, x-utf8.RuneCountInString(rows[y]))))
			rows[y] = string(row[:x]) + string(r) + string(row[min(x+1, len(row)):])
			x++
		}
	}
	for i, row := range rows {
		rows[i] = strings.TrimRight(row, " ")
	}
	for len(rows) > 1 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	return rows
}

func cutRow(row string, x int) string {
	return string([]rune(row)[:min(x, utf8.RuneCountInString(row))])
}

// rows returns the rows on the terminal, with ~ for the home folder.
func (p *pty) rows(home string, columns uint16) []string {
	return renderScreen(strings.ReplaceAll(p.output(), home, "~"), int(columns), 24)
}

func TestImportScreen(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, _ := newScreenUser(t)
		writeOtherTools(p)
		terminal := startOnTerminal(t, p.newCommand("import"), columns, 24)
		terminal.expect("[y/N]")
		terminal.typeText("y\r")
		terminal.expect("read-only? [y/N]")
		terminal.typeText("n\r")
		terminal.expect("dowel up")
		terminal.expectExit(0)
		<-terminal.ended
		checkScreen(t, "import", columns, terminal.rows(p.home, columns))
		checkText(t, p.readText(p.userFile()), []string{`"my-files"`, `"title": "My Files"`, `"${env:NO_SUCH_TOKEN}"`, `"disabled": true`}, []string{"theme"})
		checkText(t, p.expectSuccess("No servers to add", "import", "--dry-run"), nil, []string{"+ "})
	}
}

func TestImportOfNothing(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, _ := newScreenUser(t)
		terminal := startOnTerminal(t, p.newCommand("import"), columns, 24)
		terminal.expect("dowel add")
		terminal.expectExit(0)
		<-terminal.ended
		checkScreen(t, "import-nothing", columns, terminal.rows(p.home, columns))
	}
}

// A command that starts a server shows that it does, so that a slow start does not look like a
// hang.
func TestStartIsShown(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "tools", "--", "sh", "-c", "cat >/dev/null")
	p.expect("starting sh -c cat >/dev/null, ")
	p.typeText("\x03")
	_ = p.cmd.Wait()
	<-p.ended
	if rows := renderScreen(p.output(), 80, 24); strings.Contains(strings.Join(rows, "\n"), "starting") {
		t.Errorf("the line stays: %q", rows)
	}
}

// newScreenUser returns a user and the path of dowel for its files. All paths have the same length
// in each run, because lines are broken and cut before the paths are replaced.
func newScreenUser(t *testing.T) (p *testUser, program string) {
	t.Helper()
	base, err := os.MkdirTemp("/tmp", "dowel-screens-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	fixed := func(fill string) string { return filepath.Join(base, strings.Repeat(fill, 48-len(base))) }
	p = newTestUser(t)
	p.home, p.project, program = fixed("h"), fixed("p"), fixed("b")
	if err := errors.Join(os.Mkdir(p.home, 0o700), os.Mkdir(p.project, 0o700), os.Symlink(testBinary(t), program)); err != nil {
		t.Fatal(err)
	}
	return p, program
}

// dowel up shows a line for each server, the failed ones first, and equal causes once, on terminals
// of any height.
func TestUpScreen(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		for _, height := range []uint16{24, 6} {
			p, program := newScreenUser(t)
			p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"kv": {"command": %q, "args": ["serve", "kv"]},
				"a": {"command": "no-such-program"}, "b": {"command": "no-such-program"}, "off": {"command": "x", "disabled": true},
				"needy": {"command": "x", "env": {"TOKEN": "${NO_SUCH_TOKEN}"}}}}`, program))
			cmd := p.newCommand("up", "--http", "0")
			cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin")
			terminal := startOnTerminal(t, cmd, columns, height)
			terminal.expect("1 ready, 2 failed, 1 needs you, 1 off")
			terminal.typeText("\x03")
			_ = terminal.cmd.Wait()
			<-terminal.ended
			text := strings.NewReplacer(p.home, "~", p.project, "/project", program, "/bin/dowel").Replace(terminal.output())
			rows := renderScreen(text, int(columns), int(height))
			first := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "a  ") })
			last := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "1 ready") })
			if first < 0 || last < first || slices.ContainsFunc(rows[:first], func(row string) bool { return strings.HasPrefix(row, "needy ") }) {
				t.Fatalf("the table is not drawn once:\n%s", strings.Join(rows, "\n"))
			}
			checkScreen(t, fmt.Sprintf("up-%d-rows", height), columns, rows[first:last+1])
		}
	}
}

// The parts of a screen that differ between runs: an age with the spaces after it, a duration, a
// process, the number of operations so far, the port of the gateway, a time.
var (
	screenAge      = regexp.MustCompile(`\b\d+[smhd]\b *`)
	screenDuration = regexp.MustCompile(` \([\d.]+m?s\)| in [\d.]+m?s\b`)
	screenProcess  = regexp.MustCompile(`process \d+`)
	screenCount    = regexp.MustCompile(`none of the \d+ `)
	screenNumber   = regexp.MustCompile(`(127\.0\.0\.1):\d+|\d\d:\d\d:\d\d`)
)

// maskVolatile replaces the parts that differ between runs.
func maskVolatile(rows []string) []string {
	for i, row := range rows {
		row = screenDuration.ReplaceAllString(row, "")
		row = screenProcess.ReplaceAllString(row, "process #")
		row = screenCount.ReplaceAllString(row, "none of the # ")
		row = screenNumber.ReplaceAllString(row, "$1#")
		row = screenAge.ReplaceAllStringFunc(row, func(found string) string { return fmt.Sprintf("%-*s", len(found), "#s") })
		rows[i] = strings.TrimRight(row, " ")
	}
	return rows
}

// The commands that show lists and states look as their files say. The terminal itself breaks lines
// that are too long for it.
func TestCommandScreens(t *testing.T) {
	t.Parallel()
	p, program := newScreenUser(t)
	p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"kv": {"command": %q, "args": ["serve", "kv", "memory=true"]},
		"a": {"command": "/no/such/program"}, "off": {"command": "x", "disabled": true}, "needy": {"command": "x", "env": {"TOKEN": "${NO_SUCH_TOKEN}"}}}}`, program))
	p.startDaemon()
	p.awaitStates(map[string]hub.Status{"kv": hub.Ready, "a": hub.Failed, "needy": hub.NeedsConfiguration, "off": hub.Disabled})
	polltest.Until(t, "the last attempt of a", func() bool { return p.serverStates()["a"].Next.IsZero() })
	for name, words := range map[string][]string{
		"help": {"--help"}, "status": {"status"}, "status-failed": {"status", "a"}, "servers": {"servers", "list"}, "tools": {"tools", "kv"}, "models": {"models"}, "doctor-failed": {"doctor", "a"},
		"prompts": {"prompts", "kv"}, "call": {"call", "kv.set", "key=a", "value=1"}, "call-failed": {"call", "kv.get", "key=missing"},
		"call-unknown": {"call", "kv.gte"}, "config": {"config", "check"}, "trust": {"trust"}, "task": {"task", "list"}, "exit-codes": {"help", "exit-codes"}, "export-none": {"export", "--to", "nothing"}, "run-none": {"run", "hello"},
		"discover": {"discover", "everything"}, "resources": {"resources", "everything"}, "read": {"read", "everything", "test://static-text"}, "read-unknown": {"read", "everything", "test://nothing"},
		"prompt": {"prompt", "everything.test_prompt_with_arguments", "arg1=a", "arg2=b"}, "prompt-missing": {"prompt", "everything.test_prompt_with_arguments"}, "complete": {"complete", "everything.test_prompt_with_arguments", "arg1="},
		"auth-status": {"auth", "status"}, "login-none": {"login", "nothing"}, "logout-none": {"logout", "nothing"}, "add-nothing": {"add"}, "add-twice": {"add", "kv", "--", "true"}, "add-dry": {"add", "new", "--dry-run", "--", "npx", "-y", "@acme/mcp"},
		"search-offline": {"search", "weather", "--registry", "http://127.0.0.1:1"}, "logs-unknown": {"servers", "logs", "nothing"}, "servers-unknown": {"servers", "restart", "nothing"},
		"service": {"service"}, "serve-unknown": {"serve", "nothing"}, "chat-none": {"chat"}, "watch-unknown": {"watch", "nothing"}, "wire-past": {"wire", "--past", "server:nothing"}, "wire-wrong": {"wire", "dur:slow"},
		"help-serve": {"serve", "--help"}, "help-wire": {"wire", "--help"}, "help-chat": {"chat", "--help"}, "up-second": {"up"},
	} {
		for _, columns := range screenWidths {
			terminal := startOnTerminal(t, p.newCommand(words...), columns, 24)
			_ = terminal.cmd.Wait() // some end with an error
			<-terminal.ended
			text := strings.NewReplacer(p.home, "~", p.project, "/project", program, "/bin/dowel").Replace(terminal.output())
			compareScreen(t, name, columns, maskVolatile(renderScreen(text, int(columns), 24)))
		}
	}
}

// The commands that run until Ctrl-C look like this before it, and down and status say that they
// ran.
func TestRunningScreens(t *testing.T) {
	t.Parallel()
	for _, columns := range screenWidths {
		p, program := newScreenUser(t)
		p.writeFile(p.userFile(), fmt.Sprintf(`{"mcpServers": {"kv": {"command": %q, "args": ["serve", "kv", "memory=true"]}}}`, program))
		p.startDaemon()
		p.awaitStates(map[string]hub.Status{"kv": hub.Ready})
		show := func(name, said string, words ...string) {
			terminal := startOnTerminal(t, p.newCommand(words...), columns, 24)
			if said != "" {
				terminal.expect(said)
				terminal.typeText("\x03")
			}
			_ = terminal.cmd.Wait()
			<-terminal.ended
			rows := maskVolatile(terminal.rows(p.home, columns))
			if at := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, "^C") }); at >= 0 {
				rows = rows[:at]
			}
			compareScreen(t, name, columns, rows)
		}
		show("logs-follow", "ready", "servers", "logs", "kv", "--follow")
		show("restart", "", "servers", "restart", "kv")
		show("serve-http", "status --token", "serve", "everything", "--http", "0")
		show("down", "", "down")
		show("down-again", "", "down")
		show("status-none", "", "status")
	}
}
