package configured_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/configured"
)

// A change of a real file restarts a server of a hub that uses WatchFiles.
func TestWatchFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code.js")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	h := startHub(t, hub.Options{Watch: configured.WatchFiles, Logger: quiet}, hub.Definition{
		Name: "dev", Target: everything.New(), Policy: hub.Policy{WatchPaths: []string{path}},
	})
	events := h.Events(t.Context(), hub.StateChanged)
	write("2")
	timeout := time.AfterFunc(time.Minute, func() { h.Close() }) // which ends the server
	defer timeout.Stop()
	for e := range events {
		switch {
		case e.State.Cause == "code.js was modified":
			return
		case e.State.Status == hub.Removed:
			t.Fatal("the server was not restarted within a minute")
		}
	}
}
