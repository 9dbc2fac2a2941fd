package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const recordedEvents = `{"Action":"run","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStart"}
{"Action":"run","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStart"}
{"Action":"output","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStart/slow","Output":"    start_test.go:3: boom\n"}
{"Action":"fail","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStart/slow"}
{"Action":"fail","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStart"}
{"Action":"fail","Package":"github.com/dowel-mcp/dowel/hub"}
{"Action":"pass","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestStop"}
{"Action":"output","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestRedis","Output":"    redis_test.go:9: Redis is missing\n"}
{"Action":"output","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestRedis","Output":"--- SKIP: TestRedis (0.00s)\n"}
{"Action":"skip","Package":"github.com/dowel-mcp/dowel/hub","Test":"TestRedis"}
not JSON
{"Action":"fail","Package":"github.com/dowel-mcp/dowel/interop/peers"}
{"Action":"pa`

func TestReadEvents(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.json"), []byte(recordedEvents), 0o600); err != nil {
		t.Fatal(err)
	}
	counts, err := readEvents(folder)
	if err != nil {
		t.Fatal(err)
	}
	if counts.runs != 2 {
		t.Errorf("%d runs, want 2", counts.runs)
	}
	if counts.passed != 1 {
		t.Errorf("%d tests passed, want 1", counts.passed)
	}
	var commands []string
	for _, failed := range counts.failed {
		commands = append(commands, failed.repeatCommand(failed.name != ""))
	}
	want := []string{"go test -race -run '^TestStart$/^slow$' ./hub", "cd interop && go test ./peers"}
	if !slices.Equal(commands, want) {
		t.Errorf("repeat with %q, want %q", commands, want)
	}
	if len(counts.failed) == 0 || !slices.Equal(counts.failed[0].output, []string{"    start_test.go:3: boom"}) {
		t.Errorf("failed: %q", counts.failed)
	}
	if len(counts.skipped) != 1 || counts.skipped[0].reason != "redis_test.go:9: Redis is missing" {
		t.Errorf("skipped: %v", counts.skipped)
	}
}

func TestSummaryNamesEveryFailure(t *testing.T) {
	var out bytes.Buffer
	ok := writeSummary(&out, []stageResult{
		{name: "vet"},
		{name: "fuzz", failed: true, repeat: []string{"go test -fuzz '^FuzzScan$' ./jsonrpc"}},
		{name: "unit", failed: true, repeat: []string{"go test ./hub"}, tests: testCounts{passed: 7, failed: []testOutcome{{output: []string{"start_test.go:3: boom"}}}}},
	})
	if ok {
		t.Error("two stages failed, and the summary says ok")
	}
	for _, want := range []string{"failed in fuzz, repeat with: go test -fuzz '^FuzzScan$' ./jsonrpc\n", "failed in unit, repeat with: go test ./hub\n", "start_test.go:3: boom\n", "\n8 passed, 2 failed, 0 skipped\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, &out)
		}
	}
	out.Reset()
	if writeSummary(&out, []stageResult{{name: "unit", skipped: true}}) {
		t.Error("a stage that did not run counts as passed")
	}
	if !writeSummary(&out, []stageResult{{name: "unit"}}) {
		t.Error("a stage that passed counts as failed")
	}
}
