package atomicfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An update removes what a killed process has left, and nothing else.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	old, now := time.Now().Add(-2*time.Hour), time.Now()
	for _, f := range []struct {
		name    string
		written time.Time
	}{
		{".dowel-killed.tmp", old}, {".dowel-being-written.tmp", now}, {"old.tmp", old}, {".dowel-old.json", old},
	} {
		path := filepath.Join(folder, f.name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, f.written, f.written); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, ".dowel-folder.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(folder, ".dowel-folder.tmp"), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := Update(filepath.Join(folder, "file"), func([]byte, bool) ([]byte, error) { return []byte("new"), nil }, Options{}); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		".dowel-killed.tmp": false, ".dowel-being-written.tmp": true, "old.tmp": true, ".dowel-old.json": true, ".dowel-folder.tmp": true, "file": true,
	} {
		if _, err := os.Lstat(filepath.Join(folder, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Folders that were opened from another folder are told apart.
func TestLeftoversOfNestedRoots(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	top, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"a", "b"} {
		if err := top.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name, ".dowel-killed.tmp")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		inner, err := top.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		RemoveLeftovers(inner)
		inner.Close()
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// What killed processes have left in the folder for temporary files is removed after a week.
func TestForgotten(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	t.Setenv("TMP", folder)
	old := time.Now().Add(-8 * 24 * time.Hour)
	for name, isOld := range map[string]bool{"dowel-results-killed": true, "dowel-results-running": false, "other-results-killed": true} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "1.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if isOld {
			if err := os.Chtimes(filepath.Join(folder, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	RemoveForgotten("dowel-results-")
	for name, stays := range map[string]bool{"dowel-results-killed": false, "dowel-results-running": true, "other-results-killed": true} {
		if _, err := os.Lstat(filepath.Join(folder, name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}
