package stdio

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Options configure [Serve]. The zero value is ready.
type Options struct {
	transport.ServerOptions
	// MaxMessage bounds a line in bytes, default [transport.DefaultMaxMessage].
	MaxMessage int
}

// Serve serves h as the child of a client: requests come on standard input, answers go to standard output. It returns
// when the client closes standard input (nil) or ctx ends.
//
// Standard output belongs to the protocol from then on: os.Stdout becomes standard error, so that a stray print cannot
// break the stream. Serve can be called once in a process.
func Serve(ctx context.Context, h mcp.Handler, opts ...Options) error {
	out := takeStdout()
	if out == nil {
		return errors.New("stdio.Serve has been called before in this process: standard output is taken")
	}
	return ServeStream(ctx, &standard{standardInput(), out}, h, opts...)
}

// ServeStream serves h to one client over any stream of bytes, which it closes in the end. It returns when the client
// ends the stream (nil) or ctx ends.
func ServeStream(ctx context.Context, rwc io.ReadWriteCloser, h mcp.Handler, opts ...Options) error {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	return overconn.Serve(ctx, Conn(rwc, o.MaxMessage), h, o.ServerOptions)
}

var stdout struct {
	sync.Mutex
	taken bool
}

// takeStdout returns the process's standard output and leaves standard error in its place; nil the second time.
func takeStdout() *os.File {
	stdout.Lock()
	defer stdout.Unlock()
	if stdout.taken {
		return nil
	}
	stdout.taken = true
	out := divertStdout()
	os.Stdout = os.Stderr // for what reads the variable from now on
	return out
}

// standard is the two standard streams as one.
type standard struct {
	in  io.ReadCloser
	out *os.File
}

func (s *standard) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *standard) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *standard) Close() error                { return errors.Join(s.in.Close(), s.out.Close()) }
