package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/docs"
)

// A verdict says how the tests reacted to a mutant.
type verdict string

const (
	caught   verdict = "caught"
	survived verdict = "NOT CAUGHT"
	broken   verdict = "NOT TRIED" // the mutant does not apply or does not compile
)

// A result is a mutant after its tests.
type result struct {
	mutant  mutant
	verdict verdict
	by      docs.TestName // the tests of this package noticed it
	reason  string        // why the mutant was not tried
	elapsed time.Duration
}

func (r result) String() string {
	text := fmt.Sprintf("%-16s %s %s", r.mutant.row, r.verdict, r.mutant.file)
	if r.verdict == caught {
		text += " by " + r.by.String()
	}
	if r.verdict == survived {
		text += fmt.Sprintf(" by %v (%s)", r.mutant.tests, r.mutant.at)
	}
	if r.reason != "" {
		text += ": " + r.reason
	}
	return fmt.Sprintf("%s, %.1f s", text, r.elapsed.Seconds())
}

// tryMutant runs the tests of a mutant, one package after another, until one fails.
func tryMutant(ctx context.Context, m mutant, limit time.Duration) result {
	start := time.Now()
	r := result{mutant: m, verdict: survived}
	overlay, err := writeOverlay(m)
	if err != nil {
		r.verdict, r.reason = broken, err.Error()
		return r
	}
	defer os.RemoveAll(filepath.Dir(overlay))
	for _, group := range groupTests(m) {
		out, err := runTests(ctx, group, overlay, limit)
		if ctx.Err() != nil {
			break
		}
		if r.judgeOutput(group, out, err != nil); r.verdict != survived {
			break
		}
	}
	if len(m.tests) == 0 {
		r.verdict, r.reason = broken, "docs/spec names no test for "+m.row
	}
	r.elapsed = time.Since(start)
	return r
}

// groupTests returns the tests of a mutant by package: one build serves all tests of a package. The
// package of the changed file comes first, and packages of the program come last, because their
// tests take the longest to build.
func groupTests(m mutant) [][]docs.TestName {
	cost := func(folder string) int {
		switch {
		case folder == path.Dir(m.file):
			return 0
		case strings.HasPrefix(folder, "internal/cli"):
			return 2
		}
		return 1
	}
	tests := slices.Clone(m.tests)
	slices.SortStableFunc(tests, func(a, b docs.TestName) int {
		return cmp.Or(cmp.Compare(cost(a.Folder), cost(b.Folder)), strings.Compare(a.Folder, b.Folder))
	})
	var groups [][]docs.TestName
	for _, test := range tests {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Folder == test.Folder {
			groups[last] = append(groups[last], test)
		} else {
			groups = append(groups, []docs.TestName{test})
		}
	}
	return groups
}

// judgeOutput sets the verdict from the output of the tests of one package.
func (r *result) judgeOutput(group []docs.TestName, out []byte, failed bool) {
	if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
		r.verdict, r.reason = broken, "it does not compile:\n"+string(out)
		return
	}
	for _, test := range group {
		if bytes.Contains(out, []byte("--- FAIL: "+test.Function+" (")) {
			r.verdict, r.by = caught, test
			return
		}
	}
	for _, test := range group {
		hasBegun := bytes.Contains(out, []byte("=== RUN   "+test.Function+"\n"))
		isLate := bytes.Contains(out, []byte("\t"+test.Function+" (")) || bytes.Contains(out, []byte("\t"+test.Function+"/"))
		switch {
		case !failed && !hasBegun:
			r.verdict, r.reason = broken, test.String()+" does not exist"
			return
		case failed && isLate: // in the list of tests that ran at the end of the time
			r.verdict, r.by = caught, test
			return
		}
	}
	if failed { // an exit of the process, or TestMain
		r.verdict, r.by = caught, group[0]
	}
}

// runTests runs tests of one package with the changed file.
func runTests(ctx context.Context, group []docs.TestName, overlay string, limit time.Duration) ([]byte, error) {
	var names []string
	for _, test := range group {
		names = append(names, test.Function)
	}
	pattern := "^(" + strings.Join(names, "|") + ")$"
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-count=1", "-v", "-timeout", limit.String(), "-run", pattern, "./"+group[0].Folder)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the go command ends its test
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// writeOverlay writes the changed file and the overlay for the go command into a new folder, and
// returns the path of the overlay.
func writeOverlay(m mutant) (string, error) {
	text, err := os.ReadFile(filepath.FromSlash(m.file))
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.at, err)
	}
	changed, err := m.apply(string(text))
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.FromSlash(m.file))
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return "", err
	}
	replacement, overlay := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err == nil {
		err = os.WriteFile(replacement, []byte(changed), 0o600)
	}
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err != nil {
		os.RemoveAll(folder)
		return "", err
	}
	return overlay, nil
}
