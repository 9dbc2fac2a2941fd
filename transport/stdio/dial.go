package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Endpoint implements [transport.Dialer]: the command with its arguments and folder.
func (c Command) Endpoint() string {
	parts := []string{strconv.Quote(c.Path)}
	for _, arg := range c.Args {
		parts = append(parts, strconv.Quote(arg))
	}
	return "stdio:" + c.Dir + ":" + strings.Join(parts, " ")
}

// String is the program as it was named; arguments are left out because they carry secrets.
func (c Command) String() string { return c.Path }

// Dial starts the command and connects to it. An old server that dies of the question for its era is started again and
// asked the old way. Closing the transport ends the process tree. ctx bounds the dial, not the life of the process.
func (c Command) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	t, err := c.dial(ctx, in, opts)
	if !errors.Is(err, transport.ErrProbe) || opts.Revision != "" || ctx.Err() != nil {
		return t, err
	}
	opts.Memory().Remember(c.Endpoint(), mcp.LatestLegacyRevision)
	t, again := c.dial(ctx, in, opts)
	if again != nil {
		opts.Memory().Remember(c.Endpoint(), "")
		return nil, again
	}
	return t, nil
}

func (c Command) dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	child, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	t, err := overconn.Connect(ctx, &childConn{Conn: Conn(child, 0), child: child}, in, c.Endpoint(), opts)
	if err != nil {
		return nil, withStderr(err, child)
	}
	return &process{t, child}, nil
}

// withStderr adds what a server said on stderr to an error of its dial, such as a time-out, that does not hold it yet.
func withStderr(err error, child *Child) error {
	const lines = 10
	var exit *ExitError
	if tail := child.StderrTail(lines); tail != "" && !errors.As(err, &exit) {
		return fmt.Errorf("%w; the server's last words on stderr:\n\t%s", err, strings.ReplaceAll(tail, "\n", "\n\t"))
	}
	return err
}

// process is a transport to a child.
type process struct {
	mcp.Transport
	child *Child
}

// Child is the process behind the transport, for those who want to see its id or stderr.
func (p *process) Child() *Child { return p.child }

// UnaddressedFrames implements [frames.Unaddressed].
func (p *process) UnaddressedFrames() int64 { return frames.Unaddressed(p.Transport) }

func (p *process) Notify(ctx context.Context, n mcp.Notification) error {
	return p.Transport.(mcp.Notifier).Notify(ctx, n)
}

// ChildOf returns the process behind a transport that [Command.Dial] returned; nil for any other.
func ChildOf(t mcp.Transport) *Child {
	if p, ok := t.(interface{ Child() *Child }); ok {
		return p.Child()
	}
	return nil
}

// childConn tells, where the stream ends, how the child ended.
type childConn struct {
	transport.Conn
	child  *Child
	closed sync.Once
	err    error
}

func (c *childConn) Read() ([]byte, error) {
	frame, err := c.Conn.Read()
	if err == nil || errors.Is(err, transport.ErrFrame) || errors.Is(err, os.ErrClosed) {
		return frame, err
	}
	return nil, c.reason(err)
}

// reason waits a moment for the exit that most likely ended the stream.
func (c *childConn) reason(err error) error {
	const moment = time.Second
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-c.child.Exited():
		return fmt.Errorf("%w: %w", mcp.ErrConnection, c.child.ExitError())
	case <-timer.C:
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the server closed its stdout and lives on", mcp.ErrConnection)
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

func (c *childConn) Close() error {
	c.closed.Do(func() { c.err = c.child.Close() })
	return c.err
}

// Stream returns a dialer of a server at the other end of a stream. It can be dialed once: a stream cannot be opened
// again.
func Stream(rwc io.ReadWriteCloser) transport.Dialer { return &stream{rwc: rwc} }

type stream struct {
	rwc  io.ReadWriteCloser
	used sync.Once
}

func (s *stream) Endpoint() string { return "" }

func (s *stream) String() string { return "a server at the other end of a stream" }

func (s *stream) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	err := errors.New("a stream can be dialed once: open a new one")
	var t mcp.Transport
	s.used.Do(func() { t, err = overconn.Connect(ctx, Conn(s.rwc, 0), in, s.Endpoint(), opts) })
	return t, err
}
