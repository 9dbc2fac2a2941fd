package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// try runs the tests of a mutant one after another until one fails.
func try(ctx context.Context, m mutant, limit time.Duration) result {
	start := time.Now()
	r := result{mutant: m, verdict: survived}
	overlay, err := writeOverlay(m)
	if err != nil {
		r.verdict, r.reason = broken, err.Error()
		return r
	}
	defer os.RemoveAll(filepath.Dir(overlay))
	for _, test := range m.tests {
		out, err := runTest(ctx, test, overlay, limit)
		if ctx.Err() != nil {
			break
		}
		if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
			r.verdict, r.reason = broken, "it does not compile:\n"+string(out)
			break
		}
		if bytes.Contains(out, []byte("no tests to run")) {
			r.verdict, r.reason = broken, test.String()+" does not exist"
			break
		}
		if err != nil {
			r.verdict, r.by = caught, test
			break
		}
	}
	if len(m.tests) == 0 {
		r.verdict, r.reason = broken, "docs/spec names no test for "+m.row
	}
	r.elapsed = time.Since(start)
	return r
}

// runTest runs one test with the changed file.
func runTest(ctx context.Context, test docs.TestName, overlay string, limit time.Duration) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-failfast", "-count=1", "-timeout", limit.String(), "-run", "^"+test.Function+"$", "./"+test.Folder)
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
