package daemon

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

// The error for a port in use names the process that has it.
func TestExplainListen(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = net.Listen("tcp", l.Addr().String())
	got := ExplainListen(err, l.Addr().String()).Error()
	if want := fmt.Sprintf("(process %d) uses that port", os.Getpid()); !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := ExplainListen(net.ErrClosed, l.Addr().String()); got != net.ErrClosed {
		t.Error(got)
	}
}
