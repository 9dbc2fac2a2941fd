package state_test

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// agreeTo returns an agreement to facts.
func agreeTo(facts ...string) config.Agreement {
	a := config.Agreement{Facts: append([]string{}, facts...), Digests: map[string]string{"kind stdio": "00"}}
	for _, fact := range facts {
		a.Digests[fact] = "d1"
	}
	return a
}

// An agreement of an older dowel is a hash and facts.
func TestOldTrust(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	put(t, path, `{"trust": {"/f": {"a": {"hash": "h", "facts": ["command npx"]}, "b": {"hash": ""}}}}`)
	s, w := open(t, path)
	if a, ok := s.Trusted("/f", "a"); !ok || a.Hash != "h" || a.Digests != nil || !slices.Equal(a.Facts, []string{"command npx"}) {
		t.Error(a, ok)
	}
	if _, ok := s.Trusted("/f", "b"); ok {
		t.Error("an empty entry is trust")
	}
	w.expect(t)
}

// All processes have the same key. The file that holds it is the user's alone.
func TestTrustKey(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	var all [8]string
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			other, err := state.Open(s.Path(), state.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			err = retryLocked(func() error {
				key, err := other.TrustKey()
				all[i] = string(key)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for _, key := range all {
		if len(key) < 43 || key != all[0] {
			t.Errorf("%q and %q", key, all[0])
		}
	}
	if info, err := os.Stat(s.Path()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestTrust(t *testing.T) {
	s, _ := fresh(t)
	folder := t.TempDir()
	t.Chdir(folder)
	folder, err := os.Getwd()
	must(t, err)
	file := filepath.Join(folder, ".mcp.json")
	if _, ok := s.Trusted(file, "a"); ok {
		t.Error("trusted unasked")
	}
	must(t, s.Trust(".mcp.json", "a", agreeTo("command npx")))
	must(t, s.Trust(file, "b", agreeTo()))
	if a, ok := s.Trusted(file, "a"); !ok || !reflect.DeepEqual(a, agreeTo("command npx")) {
		t.Error(a, ok)
	}
	if _, ok := s.Trusted(filepath.Join(folder, "other"), "a"); ok {
		t.Error("another file is trusted")
	}
	wide := agreeTo("command uvx")
	wide.Folder = true
	must(t, s.Trust(file, "a", wide))
	if a, _ := s.Trusted("./.mcp.json", "a"); !reflect.DeepEqual(a, wide) {
		t.Error(a)
	}
	must(t, s.Distrust(file, "a"))
	if _, ok := s.Trusted(file, "a"); ok {
		t.Error("still trusted")
	}
	if _, ok := s.Trusted(file, "b"); !ok {
		t.Error("the other one is not trusted any more")
	}
	must(t, s.Distrust(file, "b"))
	if text := fileContent(t, s.Path()); strings.Contains(text, folder) {
		t.Errorf("a file of which nothing is trusted stays: %s", text)
	}
}
