//go:build unix

package editing

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
)

// isTemporary recognizes programs that go run has built and programs in temporary folders.
func TestIsTemporary(t *testing.T) {
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("GOCACHE", "/elsewhere/cache")
	for program, want := range map[string]bool{
		"/scratch/go-build123/b001/exe/dowel":           true,
		"/home/u/.cache/go-build/ab/0123-d/dowel":       true,
		"/elsewhere/cache/ab/0123-d/dowel":              true,
		"/scratch/dowel":                                true,
		"/scratch/go-build123/b001/dowel.test":          false,
		"/home/u/go/bin/dowel":                          false,
		"/home/u/src/dowel/dowel":                       false,
		"/scratchy/dowel":                               false,
		"/usr/local/go-bu/exe/dowel":                    false,
		"/home/u/go/bin/exe/dowel":                      false,
		"/home/u/Library/Caches/go-build/ab/0-d/dowel":  true,
		"/home/u/go-build-tools/bin/dowel":              false,
		"/var/folders/x/T/go-build42/b001/exe/main.exe": true,
	} {
		if got := isTemporary(program); got != want {
			t.Errorf("%s: %v", program, got)
		}
	}
}

// Instead of a temporary program, other tools start the installed dowel. Without one, the error
// tells how to install it.
func TestPermanentPath(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("PATH", folder)
	if got, err := permanentPath("/home/u/go/bin/dowel"); err != nil || got != "/home/u/go/bin/dowel" {
		t.Error(got, err)
	}
	if got, err := permanentPath("/scratch/go-build1/b001/exe/dowel"); exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "go install ./cmd/dowel") {
		t.Error(got, err)
	}
	installed := filepath.Join(folder, "dowel")
	if err := os.WriteFile(installed, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := permanentPath("/scratch/go-build1/b001/exe/dowel"); err != nil || got != installed {
		t.Error(got, err)
	}
	t.Setenv("TMPDIR", folder)
	if got, err := permanentPath("/home/u/.cache/go-build/ab/0-d/dowel"); err == nil {
		t.Errorf("got the temporary path %s", got)
	}
}
