package up

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
)

var update = flag.Bool("update", false, "write the expected screens anew")

// manyServers returns servers in all states, of which several have the same cause.
func manyServers() []control.Server {
	const missing, install = `"npx" was not found: neither on PATH (7 folders) nor in the folders of login shells and installers`,
		"Install Node.js (https://nodejs.org), which npx is part of, or give the full path of npx."
	all := []control.Server{
		{Name: "files", Status: hub.Ready, Tools: 11},
		{Name: "github", Status: hub.Failed, Problem: missing, Advice: install, Attempt: 1},
		{Name: "slack", Status: hub.NeedsConfiguration, Cause: "env.SLACK_TOKEN: environment variable SLACK_TOKEN is not set"},
		{Name: "crash", Status: hub.Starting, Problem: "the process ended (exit status 1): Error: boom: API key missing", Advice: "Correct the cause that this error names, or report it to the server's author.", Attempt: 2},
		{Name: "notion", Status: hub.Failed, Problem: missing, Advice: install, Attempt: 1},
		{Name: "new", Status: hub.Starting, Cause: "it is new"},
		{Name: "off", Status: hub.Disabled, Cause: "disabled in dowel.json"},
		{Name: "cloned", Status: hub.NeedsTrust, Cause: "it belongs to a project: dowel trust cloned"},
		{Name: "one", Status: hub.Ready, Tools: 1, Note: "all clients share it"},
		{Name: "linear", Status: hub.Failed, Problem: missing, Advice: install, Attempt: 1},
	}
	return all
}

func TestTable(t *testing.T) {
	t.Parallel()
	v := &statusView{Factory: &factory.Factory{Stdout: term.NewScreen(io.Discard, func() {})}}
	for _, width := range []int{80, 120} {
		got := strings.Join(v.formatTable(manyServers(), width-1, 40), "\n") + "\n"
		path := filepath.Join("testdata", fmt.Sprintf("table-%d.txt", width))
		if *update {
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
		if strings.Count(got, "was not found") != 1 || strings.Count(got, "nodejs.org") != 1 {
			t.Errorf("a cause is shown more than once:\n%s", got)
		}
	}
}

// The table fits every terminal, and ends with the summary.
func TestTableFits(t *testing.T) {
	t.Parallel()
	v := &statusView{Factory: &factory.Factory{Stdout: term.NewScreen(io.Discard, func() {})}}
	for _, n := range []int{0, 1, 10} {
		for rows := 1; rows < 30; rows++ {
			for _, width := range []int{1, 9, 40, 79} {
				lines := v.formatTable(manyServers()[:n], width, rows)
				last := summarize(manyServers()[:n])
				if len(lines) > rows || lines[len(lines)-1] != term.Shorten(last, width) {
					t.Fatalf("%d servers in %d rows:\n%s", n, rows, strings.Join(lines, "\n"))
				}
				for _, line := range lines {
					if utf8.RuneCountInString(line) > width {
						t.Fatalf("%q is wider than %d", line, width)
					}
				}
			}
		}
	}
	if got := cutLines([]string{"1", "2", "3", "4", "5"}, 3, 40); len(got) != 3 || got[2] != "… 3 more lines: dowel status" {
		t.Error(got)
	}
}

// A cause that is too long for its line begins with the words that tell the most, and has lines of
// its own where there is room.
func TestCauseInTable(t *testing.T) {
	t.Parallel()
	v := &statusView{Factory: &factory.Factory{Stdout: term.NewScreen(io.Discard, func() {})}}
	servers := []control.Server{
		{Name: "crash", Status: hub.Failed, Problem: "the process ended (exit status 1): Error: boom: API key missing", Advice: "Correct the cause."},
		{Name: "needy", Status: hub.NeedsConfiguration, Cause: "/home/ada/dowel.json:36:41: env.GITHUB_PERSONAL_ACCESS_TOKEN: environment variable NO_SUCH is not set: set it where dowel is started"},
	}
	for rows, want := range map[int]string{
		24: `crash  failed               Error: boom: API key missing
    → Correct the cause.
needy  needs configuration
    env.GITHUB_PERSONAL_ACCESS_TOKEN: environment variable NO_SUCH is
    not set: set it where dowel is started
1 failed, 1 needs you`,
		5: `crash  failed               Error: boom: API key missing
    → Correct the cause.
needy  needs configuration  environment variable NO_SUCH is not set: se…
1 failed, 1 needs you`,
	} {
		if got := strings.Join(v.formatTable(servers, 72, rows), "\n"); got != want {
			t.Errorf("in %d rows:\n%s\nwant\n%s", rows, got, want)
		}
	}
}

// An address that is cut cannot be opened, so the table says where it is whole.
func TestAddressInTable(t *testing.T) {
	t.Parallel()
	v := &statusView{Factory: &factory.Factory{Stdout: term.NewScreen(io.Discard, func() {})}}
	servers := []control.Server{{Name: "linear", Status: hub.NeedsLogin, Cause: "it waits until you have logged in at https://login.example/authorize?" + strings.Repeat("x", 80)}}
	for _, rows := range []int{24, 4} {
		if got := v.formatTable(servers, 60, rows); !slices.Contains(got, "    the whole address: dowel status linear") {
			t.Errorf("in %d rows:\n%s", rows, strings.Join(got, "\n"))
		}
	}
}

// An install is shown with its time, and counted apart from other starts.
func TestInstallInTable(t *testing.T) {
	t.Parallel()
	servers := []control.Server{
		{Name: "a", Status: hub.Starting, Installing: time.Now().Add(-41 * time.Second), Cause: "npx is installing the server"},
		{Name: "b", Status: hub.Starting, Cause: "it waits for its turn"}, {Name: "c", Status: hub.NeedsLogin, Cause: "log in"},
	}
	if state := describeState(servers[0]); state != "installing, 41 s" {
		t.Errorf("the state is %q", state)
	}
	if got := summarize(servers); got != "1 starting, 1 installing, 1 needs you" {
		t.Errorf("the summary is %q", got)
	}
}
