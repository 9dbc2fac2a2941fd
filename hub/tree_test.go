package hub_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

var (
	// parent serves like npx: it has a child process that never ends by itself.
	parent = role("parent", func() {
		self, err := os.Executable()
		if err != nil {
			panic(err)
		}
		if err := exec.Command(self, grandchild, os.Args[2]).Start(); err != nil {
			panic(err)
		}
		_ = stdio.Serve(context.Background(), echo("parent"))
	})
	grandchild = role("grandchild", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		if err := os.WriteFile(os.Args[2]+".part", []byte(l.Addr().String()), 0o600); err != nil {
			panic(err)
		}
		if err := os.Rename(os.Args[2]+".part", os.Args[2]); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour)
	})
)

// All processes that a server has started end with it, for each way in which it can end.
func TestNothingIsLeftOfAServer(t *testing.T) {
	for name, end := range map[string]func(h *hub.Hub, d hub.Definition){
		"switched off": func(h *hub.Hub, d hub.Definition) {
			d.Hold = hub.Hold{Status: hub.Disabled, Reason: "switched off"}
			h.Apply([]hub.Definition{d}, "switched off")
		},
		"removed": func(h *hub.Hub, _ hub.Definition) { h.Apply(nil, "the file changed") },
		"changed": func(h *hub.Hub, d hub.Definition) {
			d.Target, d.Fingerprint = echo("another"), "2"
			h.Apply([]hub.Definition{d}, "the file changed")
		},
		"closed": func(h *hub.Hub, _ hub.Definition) { h.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "address")
			d := hub.Definition{Name: "parent", Target: faulty(parent, path), Fingerprint: "1"}
			h := start(t, hub.Options{Logger: quiet}, d)
			settled(t, h)
			var address string
			until(t, "the grandchild runs", func() bool {
				text, err := os.ReadFile(path)
				address = string(text)
				return err == nil
			})
			end(h, d)
			until(t, "the grandchild has ended", func() bool {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					conn.Close()
				}
				return err != nil
			})
		})
	}
}
