package npxcache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHash(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		// The names that npm 11 gives.
		"npx -y @modelcontextprotocol/server-everything": "5b2dd62b9d0bddd4", "npx -y dowel-npmtest": "0156c67a258ddd64", "npx": "", "npm exec": "",
	} {
		got, ok := Hash(strings.Fields(line))
		if want != "" && got != want || ok != (len(strings.Fields(line)) > 2) {
			t.Errorf("%s: %q, %v", line, got, ok)
		}
	}
	one, _ := Hash(strings.Fields("npx -y -p a -p b program x"))
	for _, same := range []string{"npx --package=b --package a program", "npm exec -p a -p b -- program y"} {
		if got, _ := Hash(strings.Fields(same)); got != one {
			t.Errorf("%s: %s, want %s", same, got, one)
		}
	}
}

// Only folders of npx are removed, and no link is followed.
func TestRemove(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := Dir(func(string) string { return "" }, home)
	folder, kept := filepath.Join(dir, "0123456789abcdef"), filepath.Join(home, "kept")
	for _, d := range []string{filepath.Join(folder, "node_modules"), kept} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(kept, filepath.Join(dir, "fedcba9876543210")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"..", "../../kept", "", "fedcba9876543210", "0123456789abcdef/node_modules"} {
		if err := Remove(dir, name); err == nil {
			t.Errorf("%q is removed", name)
		}
	}
	if err := Remove(kept, "0123456789abcdef"); err == nil {
		t.Error("a folder outside an npx cache is removed")
	}
	if err := Remove(dir, "0123456789abcdef"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder is still there")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestRemoveIncomplete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files   map[string]string
		locked  time.Duration // since the time of the lock
		removed bool
	}{
		"no folder":      {nil, 0, false},
		"complete":       {map[string]string{"package.json": "{}", "package-lock.json": "{}", "node_modules/.package-lock.json": "{}"}, 0, false},
		"no lock file":   {map[string]string{"package.json": "{}", "node_modules/.package-lock.json": "{}"}, 0, false},
		"cut manifest":   {map[string]string{"package.json": "", "node_modules/.package-lock.json": "{}"}, 0, true},
		"cut extraction": {map[string]string{"package.json": "{}", "node_modules/a/index.js": ""}, 0, true},
		"at work":        {map[string]string{"node_modules/a/index.js": "", "concurrency.lock/x": ""}, -time.Hour, false},
		"killed at work": {map[string]string{"node_modules/a/index.js": "", "concurrency.lock/x": ""}, lockTime - 200*time.Millisecond, true},
	} {
		home := t.TempDir()
		lookup := func(string) string { return "" }
		hash, _ := Hash([]string{"npx", "pkg"})
		for file, text := range tt.files {
			path := filepath.Join(Dir(lookup, home), hash, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if tt.locked != 0 {
			at := time.Now().Add(-tt.locked)
			if err := os.Chtimes(filepath.Join(Dir(lookup, home), hash, "concurrency.lock"), at, at); err != nil {
				t.Fatal(err)
			}
		}
		if removed, err := RemoveIncomplete([]string{"npx", "pkg"}, lookup, home); removed != tt.removed || err != nil {
			t.Errorf("%s: %v, %v", name, removed, err)
		}
	}
}
