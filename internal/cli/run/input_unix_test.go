//go:build unix

package run

import (
	"os"
	"syscall"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
)

// A socket counts as a pipe: Node.js connects the standard input of its children with sockets.
func TestPipedSocket(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range pair {
		file := os.NewFile(uintptr(end), "socket")
		defer file.Close()
		if f := (&factory.Factory{Stdin: file}); !isPiped(f) {
			t.Error("a socket is ignored")
		}
	}
}
