// Command testall runs the stages of make test or make long one after another, also when one of
// them fails, and ends with a summary: the result, the time and the counts of each stage, every
// test that was skipped with its reason, and every failure with the command that repeats it and the
// last lines that the test printed.
//
// Usage, from the root of the repository:
//
//	go run ./internal/testall STAGE...
//
// A stage is a target of the Makefile. Two environment variables tell it where to report:
//
//   - DOWEL_TEST_EVENTS is a folder. Each file below it holds the events of go test -json.
//   - DOWEL_TEST_REPEAT is a file. Each line is a shell command that repeats one failure that
//     go test does not see, for example of a fuzz target.
//
// If a stage fails but reports no failure in either, the command is "make STAGE".
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "testall: name at least one target of the Makefile")
		os.Exit(2)
	}
	// make and its children get the same signal from the terminal and end by themselves.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	results, err := runStages(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testall:", err)
		os.Exit(1)
	}
	if !writeSummary(os.Stdout, results) {
		os.Exit(1)
	}
}

// A stageResult says how one stage ended.
type stageResult struct {
	name   string
	failed bool
	// skipped is true if the stage never started because the user interrupted the run.
	skipped bool
	elapsed time.Duration
	tests   testCounts
	repeat  []string // commands that repeat its failures
}

// runStages runs each stage to its end. After an interrupt the remaining stages are not started.
func runStages(ctx context.Context, names []string) ([]stageResult, error) {
	scratch, err := os.MkdirTemp("", "testall-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	var results []stageResult
	for i, name := range names {
		if ctx.Err() != nil {
			results = append(results, stageResult{name: name, skipped: true})
			continue
		}
		fmt.Printf("\n=== %s (stage %d of %d)\n", name, i+1, len(names))
		result, err := runStage(name, filepath.Join(scratch, name))
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

// runStage runs "make NAME" and collects its reports from folder, which it creates.
func runStage(name, folder string) (stageResult, error) {
	events, repeat := filepath.Join(folder, "events"), filepath.Join(folder, "repeat")
	if err := os.MkdirAll(events, 0o755); err != nil {
		return stageResult{}, err
	}
	stage := exec.Command("make", name)
	stage.Env = append(os.Environ(), "DOWEL_TEST_EVENTS="+events, "DOWEL_TEST_REPEAT="+repeat)
	stage.Stdout, stage.Stderr = os.Stdout, os.Stderr
	start := time.Now()
	runErr := stage.Run()
	result := stageResult{name: name, failed: runErr != nil, elapsed: time.Since(start)}
	var err error
	if result.tests, err = readEvents(events); err != nil {
		return result, err
	}
	for _, test := range result.tests.failed {
		result.repeat = append(result.repeat, test.repeatCommand(name == "unit"))
	}
	lines, err := os.ReadFile(repeat)
	if err != nil && !os.IsNotExist(err) {
		return result, err
	}
	for line := range strings.Lines(string(lines)) {
		result.repeat = append(result.repeat, strings.TrimSpace(line))
	}
	if result.failed && len(result.repeat) == 0 {
		result.repeat = []string{"make " + name}
	}
	return result, nil
}

// writeSummary reports whether all stages ran and passed.
func writeSummary(w io.Writer, results []stageResult) bool {
	fmt.Fprintf(w, "\n=== summary\n%-14s %-8s %8s %5s %8s %8s %8s\n", "stage", "result", "time", "runs", "passed", "failed", "skipped")
	ok := true
	var total testCounts
	for _, r := range results {
		word := "ok"
		switch {
		case r.skipped:
			word = "not run"
		case r.failed:
			word = "FAILED"
		}
		ok = ok && !r.failed && !r.skipped
		fmt.Fprintf(w, "%-14s %-8s %8s %5d %8d %8d %8d\n", r.name, word, r.elapsed.Round(time.Second), r.tests.runs, r.tests.passed, len(r.tests.failed), len(r.tests.skipped))
		total.passed += r.tests.passed
		total.failed = append(total.failed, r.tests.failed...)
		total.skipped = append(total.skipped, r.tests.skipped...)
	}
	for _, test := range total.skipped {
		fmt.Fprintf(w, "skipped: %s %s: %s\n", test.packagePath, test.name, test.reason)
	}
	for _, r := range results {
		for _, command := range r.repeat {
			fmt.Fprintf(w, "failed in %s, repeat with: %s\n", r.name, command)
		}
	}
	for _, test := range total.failed {
		fmt.Fprintf(w, "--- output of %s %s\n%s\n", test.packagePath, test.name, strings.Join(test.output, "\n"))
	}
	if ok {
		fmt.Fprintln(w, "every stage passed")
	}
	// Stages without tests of their own count as one test each, so that a failure always shows
	// here.
	passed, failed := total.passed, len(total.failed)
	for _, r := range results {
		if len(r.tests.failed) == 0 {
			if r.failed || r.skipped {
				failed++
			} else {
				passed++
			}
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, len(total.skipped))
	return ok
}
