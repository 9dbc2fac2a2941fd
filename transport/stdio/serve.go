package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Options configure [Serve] and [ServeStream]. The zero value uses the defaults. If several are
// given, they are merged: of the structs that set a field, the last one wins.
type Options struct {
	transport.ServerOptions
	// MaxMessage is the largest size of a message in bytes, by default
	// [transport.DefaultMaxMessage].
	MaxMessage int
}

// Serve serves h on standard input and output. It returns nil when the client closes standard
// input, and the cause of ctx when ctx ends.
//
// From then on standard output belongs to the protocol: os.Stdout becomes standard error, so that
// a print statement cannot corrupt the stream. Serve can be called only once in a process.
func Serve(ctx context.Context, h mcp.Handler, opts ...Options) error {
	out := takeStdout()
	if out == nil {
		return errors.New("stdio.Serve has been called before in this process: standard output is taken")
	}
	return ServeStream(ctx, Join(standardInput(), out), h, opts...)
}

// ServeStream serves h to one client on a stream of bytes, which it closes. It returns nil when
// the client ends the stream, and the cause of ctx when ctx ends.
func ServeStream(ctx context.Context, rwc io.ReadWriteCloser, h mcp.Handler, opts ...Options) error {
	o := options.Merge(opts)
	return overconn.Serve(ctx, Conn(rwc, o.MaxMessage), h, o.ServerOptions)
}

var stdout struct {
	sync.Mutex
	taken bool
}

// takeStdout returns the standard output of the process and replaces it by standard error. It
// returns nil if it was called before.
func takeStdout() io.WriteCloser {
	stdout.Lock()
	defer stdout.Unlock()
	if stdout.taken {
		return nil
	}
	stdout.taken = true
	out := divertStdout()
	os.Stdout = os.Stderr // for code that reads the variable later
	return out
}
