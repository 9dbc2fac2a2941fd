//go:build unix

package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/control"
)

// A daemon answers questions about its state while it starts.
func TestStatusWhileStarting(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, home)
	}
	file := filepath.Join(home, "x.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Socket: control.Path(home, home),
		Config: func() (config.Options, error) { return config.Options{Project: home, Files: []string{file}}, nil },
		State:  func() (*state.State, error) { return state.Open(filepath.Join(home, "state.json"), state.Options{}) },
		Logger: slog.New(slog.DiscardHandler), Warn: t.Logf, Notice: func(text string) { t.Log(text) },
	}
	o.Address = "127.0.0.1:0"
	place, err := control.Listen(o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for c := control.NewClient(o.Socket); ctx.Err() == nil; {
			_, _ = c.Status(ctx) // fails until the daemon listens
			if err := c.Yield(ctx); err == nil {
				t.Error("the daemon yields although it serves other clients")
			}
		}
	})
	d, err := startDaemon(t.Context(), place, o, "the test begins")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	asking.Wait()
	d.Stop(t.Context())
}
