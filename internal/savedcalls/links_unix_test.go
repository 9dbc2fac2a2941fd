//go:build unix

package savedcalls_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/savedcalls"
)

// A foreign project cannot make dowel read an endless device, or change a file elsewhere.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(other, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/dev/zero", other, filepath.Join(filepath.Dir(other), "missing.json")} {
		folder := t.TempDir()
		if err := os.Symlink(target, filepath.Join(folder, savedcalls.FileName)); err != nil {
			t.Fatal(err)
		}
		if all, err := savedcalls.Read(folder); err == nil {
			t.Errorf("%s is read: %v", target, all)
		}
		if err := savedcalls.Write(folder, savedcalls.Call{Name: "a", Server: "s", Tool: "t", Arguments: json.RawMessage("{}")}); err == nil {
			t.Errorf("a call is saved in %s", target)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "{}" {
		t.Errorf("the other file is %s %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(other), "missing.json")); err == nil {
		t.Error("a file was created elsewhere")
	}
}
