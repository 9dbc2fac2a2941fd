//go:build unix

package editing

import (
	"os"
	"path/filepath"
	"testing"
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

// Instead of a temporary program, other tools start the installed dowel.
func TestPermanentPath(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", "/scratch")
	t.Setenv("PATH", folder)
	if got := permanentPath("/home/u/go/bin/dowel"); got != "/home/u/go/bin/dowel" {
		t.Error(got)
	}
	if got := permanentPath("/scratch/go-build1/b001/exe/dowel"); got != "" {
		t.Error(got)
	}
	installed := filepath.Join(folder, "dowel")
	if err := os.WriteFile(installed, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := permanentPath("/scratch/go-build1/b001/exe/dowel"); got != installed {
		t.Error(got)
	}
	t.Setenv("TMPDIR", folder)
	if got := permanentPath("/home/u/.cache/go-build/ab/0-d/dowel"); got != "" {
		t.Errorf("got the temporary path %s", got)
	}
}
