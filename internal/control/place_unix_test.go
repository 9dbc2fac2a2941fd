//go:build unix

package control_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
)

// Only one of many processes becomes the running dowel; another one can when that has released its
// place. The socket of a killed process is taken over.
func TestOneListens(t *testing.T) {
	const rounds, many = 100, 8
	path := filepath.Join(t.TempDir(), "dowel.sock")
	for range rounds {
		if l, err := net.Listen("unix", path); err == nil { // as a killed one leaves it
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
		places := make(chan *control.Place, many)
		var all sync.WaitGroup
		for range many {
			all.Go(func() {
				p, err := control.Listen(path)
				if err == nil {
					places <- p
				} else if !errors.Is(err, control.ErrRunning) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(places) != 1 {
			t.Fatalf("%d listen", len(places))
		}
		p := <-places
		if p.Close(); listens(path) {
			t.Error("another listens before the place is released")
		}
		if err := p.Release(); err != nil {
			t.Error(err)
		}
	}
}

// A folder that all users can write could hold another user's socket.
func TestFolderOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dowel.sock")
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if p, err := control.Listen(path); err == nil || !strings.Contains(err.Error(), "other users can change the folder "+filepath.Dir(path)) {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := control.NewClient(path).Status(t.Context()); err == nil || errors.Is(err, control.ErrNotRunning) || !strings.Contains(err.Error(), "other users") {
		t.Error(err)
	}
}

func listens(path string) bool {
	p, err := control.Listen(path)
	if err == nil {
		p.Release()
	}
	return err == nil
}
