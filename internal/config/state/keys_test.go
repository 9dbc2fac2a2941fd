package state

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

func openKeys(t *testing.T, folder string, renew bool) *mcp.Keys {
	t.Helper()
	s, err := Open(filepath.Join(folder, "state.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := s.SealingKeys(renew)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// opens reports whether keys open the data that other keys have sealed.
func opens(keys, sealedWith *mcp.Keys) bool {
	_, err := keys.For("test").Open(sealedWith.For("test").Seal([]byte("x"), nil), nil)
	return err == nil
}

// Keys stay the same, seal for 90 days, and open for 30 days more.
func TestSealingKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		first := openKeys(t, folder, false)
		if info, err := os.Stat(filepath.Join(folder, "keys.json")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("the file of keys: %v, %v", info, err)
		}
		time.Sleep(89 * 24 * time.Hour)
		if again := openKeys(t, folder, false); !opens(first, again) {
			t.Error("a new key seals too early")
		}
		time.Sleep(2 * 24 * time.Hour)
		second := openKeys(t, folder, false)
		if opens(first, second) || !opens(second, first) {
			t.Error("after 90 days, a new key should seal and the old one open")
		}
		time.Sleep(29 * 24 * time.Hour)
		renewed := openKeys(t, folder, true)
		if opens(second, renewed) || !opens(renewed, second) || !opens(renewed, first) {
			t.Error("a renewed key should seal, and the older ones open")
		}
		time.Sleep(2 * 24 * time.Hour)
		if last := openKeys(t, folder, false); opens(last, first) || !opens(last, second) {
			t.Error("the first key should be gone, and the second stay")
		}
	})
}

// Processes that start at once get the same keys.
func TestSealingKeysAtOnce(t *testing.T) {
	folder := t.TempDir()
	all := make([]*mcp.Keys, 8)
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i] = openKeys(t, folder, false) })
	}
	starting.Wait()
	for _, keys := range all[1:] {
		if !opens(keys, all[0]) || !opens(all[0], keys) {
			t.Fatal("two processes have different keys")
		}
	}
}

// A broken file is an error and stays.
func TestBrokenSealingKeys(t *testing.T) {
	for _, content := range []string{"", "{", "{}", `{"keys": [{"secret": "c2hvcnQ=", "created": "2026-01-01T00:00:00Z"}]}`} {
		folder := t.TempDir()
		path := filepath.Join(folder, "keys.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(filepath.Join(folder, "state.json"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.SealingKeys(false); err == nil || !strings.Contains(err.Error(), "remove the file") {
			t.Errorf("%q: %v", content, err)
		}
		if now, err := os.ReadFile(path); err != nil || string(now) != content {
			t.Errorf("%q has become %q, %v", content, now, err)
		}
	}
}
