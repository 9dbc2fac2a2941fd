//go:build unix

package connect

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
)

// A running dowel that does not answer is an error. A second process of its server does not start
// in its place.
func TestSilentDaemon(t *testing.T) {
	folder, err := os.MkdirTemp("", "dowel") // t.TempDir would be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	t.Setenv("XDG_RUNTIME_DIR", folder)
	path := new(factory.Places).SocketPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if d := ReadDirectory(time.Minute); d.silent != nil {
		t.Fatalf("no dowel runs: %v", d.silent)
	}
	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	f := &TargetFlags{Found: ReadDirectory(10 * time.Millisecond)}
	if _, err := f.ByName("everything"); err == nil || !strings.Contains(err.Error(), "no connection to the running dowel: it did not answer within 10ms") || exit.Code(err) != exit.Connection {
		t.Errorf("%v", err)
	}
}
