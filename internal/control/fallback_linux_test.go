package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
)

// unwritable is a socket's path in a folder that nobody can make, not even root.
const unwritable = "/sys/dowel-test/dowel.sock"

// If the user's folder cannot be written, the socket is in a private folder, and clients find it.
func TestUnwritableFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := control.NewClient(unwritable)
	if _, err := c.Status(t.Context()); err == nil {
		t.Fatal("a dowel runs")
	}
	p, err := control.Listen(unwritable)
	if err != nil {
		t.Fatal(err)
	}
	path := p.Addr().String()
	if p.Fallback == nil || !strings.HasPrefix(path, os.TempDir()) {
		t.Errorf("the socket is %s, because of %v", path, p.Fallback)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	if _, err := control.Listen(unwritable); err == nil || !strings.Contains(err.Error(), control.ErrRunning.Error()) {
		t.Errorf("a second dowel: %v", err)
	}
	accepted := make(chan error, 1)
	go func() {
		conn, err := p.Accept()
		if err == nil {
			conn.Close()
		}
		accepted <- err
	}()
	_, _ = c.Status(t.Context()) // the connection is closed without an answer
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	if err := p.Release(); err != nil {
		t.Error(err)
	}
}

// A folder that others can enter, or a link, is not used.
func TestFallbackOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(folder string) error{
		"open": func(folder string) error { return os.Chmod(folder, 0o755) },
		"link": func(folder string) error {
			if err := os.Rename(folder, folder+"-moved"); err != nil {
				return err
			}
			return os.Symlink(folder+"-moved", folder)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			p, err := control.Listen(unwritable)
			if err != nil {
				t.Fatal(err)
			}
			folder := filepath.Dir(p.Addr().String())
			if err := p.Release(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(folder); err != nil {
				t.Fatal(err)
			}
			if p, err := control.Listen(unwritable); err == nil || !strings.Contains(err.Error(), "is not a private folder of yours") {
				t.Errorf("got %v, %v", p, err)
			}
		})
	}
}
