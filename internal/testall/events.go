package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const modulePath = "github.com/dowel-mcp/dowel"

// A testEvent is one line of go test -json; see go doc test2json.
type testEvent struct {
	Action, Package, Test, Output string
}

// testCounts sums up the events of one stage. Subtests count as tests.
type testCounts struct {
	runs            int // how often the most frequent test ran: the value of go test -count
	passed          int
	failed, skipped []testOutcome
}

// A testOutcome is a test that failed or was skipped. A package that failed without a failing test,
// for example because it does not compile, has no name.
type testOutcome struct {
	packagePath, name string
	reason            string   // the message of t.Skip
	output            []string // the last lines that a failed test printed, at most outputLines
}

// Bounds of the output that the summary repeats for a failed test.
const (
	outputLines = 25
	lineBytes   = 400
)

// testOutput keeps the last lines of each running test and the reasons of skips.
type testOutput struct {
	skipReason map[string]string
	lines      map[string][]string
}

func (o *testOutput) addLine(key, line string) {
	if skipMessage.MatchString(line) {
		o.skipReason[key] = strings.TrimSpace(line)
	}
	line = strings.TrimRight(line, "\n")
	if len(line) > lineBytes {
		line = line[:lineBytes] + "…"
	}
	if o.lines[key] = append(o.lines[key], line); len(o.lines[key]) > outputLines {
		o.lines[key] = o.lines[key][1:]
	}
}

// readEvents reads every file in folder.
func readEvents(folder string) (counts testCounts, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return counts, err
	}
	for _, name := range files {
		if err := counts.readFile(name); err != nil {
			return counts, fmt.Errorf("%s: %w", name, err)
		}
	}
	return counts, nil
}

func (c *testCounts) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	printed := &testOutput{skipReason: map[string]string{}, lines: map[string][]string{}}
	started := map[string]int{} // how often each test started
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return nil // a stage that was killed may leave half a line behind
		}
		var e testEvent
		if json.Unmarshal(line, &e) == nil {
			c.addEvent(e, printed, started)
		}
	}
}

func (c *testCounts) addEvent(e testEvent, printed *testOutput, started map[string]int) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		started[key]++
		c.runs = max(c.runs, started[key])
	case "output":
		printed.addLine(key, e.Output)
	case "pass":
		if e.Test != "" {
			c.passed++
		}
		delete(printed.lines, key)
	case "skip":
		if e.Test != "" {
			c.skipped = append(c.skipped, testOutcome{packagePath: e.Package, name: e.Test, reason: printed.skipReason[key]})
		}
	case "fail":
		c.addFailure(e, printed.lines[key])
		delete(printed.lines, key)
	}
}

// skipMessage matches a line that a test has logged: "    file_test.go:12: message".
var skipMessage = regexp.MustCompile(`^\s*\w+_test\.go:\d+: `)

// addFailure adds a failure unless a failed subtest or test already stands for it. go test reports
// subtests before their parents, and a package after its tests.
func (c *testCounts) addFailure(e testEvent, output []string) {
	covered := slices.ContainsFunc(c.failed, func(o testOutcome) bool {
		return o.packagePath == e.Package && (e.Test == "" || strings.HasPrefix(o.name, e.Test+"/"))
	})
	if !covered {
		c.failed = append(c.failed, testOutcome{packagePath: e.Package, name: e.Test, output: output})
	}
}

// repeatCommand returns the shell command that runs the test alone, from the root of the
// repository.
func (o testOutcome) repeatCommand(race bool) string {
	folder := "." + strings.TrimPrefix(o.packagePath, modulePath)
	prefix := ""
	for _, module := range []string{"attack", "chaos", "browser", "interop", "bench", "servers"} { // modules of their own
		if folder == "./"+module || strings.HasPrefix(folder, "./"+module+"/") {
			prefix, folder = "cd "+module+" && ", "."+strings.TrimPrefix(folder, "./"+module)
		}
	}
	flags := ""
	if race {
		flags = " -race"
	}
	if o.name != "" {
		var parts []string
		for part := range strings.SplitSeq(o.name, "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
		}
		flags += " -run '" + strings.Join(parts, "/") + "'"
	}
	return prefix + "go test" + flags + " " + folder
}
