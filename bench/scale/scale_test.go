//go:build linux

package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/programtest"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(natsVariable); config != "" {
		runNATS(config)
		return
	}
	os.Exit(m.Run())
}

// All sections work, at sizes that say nothing.
func TestSections(t *testing.T) {
	s := &setting{folder: t.TempDir(), factor: 0.001, times: times{settle: time.Millisecond, idle: 100 * time.Millisecond, rate: 50 * time.Millisecond, rounds: 1, many: 2}}
	var err error
	if s.dowel, err = programtest.Build(s.folder, "../.."); err != nil {
		t.Fatal(err)
	}
	for _, part := range sections {
		text, err := part.measure(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", part.name, err)
		}
		if !strings.HasPrefix(text, "### ") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: %s", part.name, text)
		}
		t.Log(text)
	}
}
