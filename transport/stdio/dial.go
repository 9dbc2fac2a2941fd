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
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// Endpoint implements [transport.Dialer]. It names the command with its arguments and folder.
func (c Command) Endpoint() string {
	parts := []string{strconv.Quote(c.Path)}
	for _, arg := range c.Args {
		parts = append(parts, strconv.Quote(arg))
	}
	return "stdio:" + c.Dir + ":" + strings.Join(parts, " ")
}

// String returns Path. It omits the arguments, which may contain secrets.
func (c Command) String() string { return c.Path }

// Dial starts the command and connects to it. A legacy server that exits because it does not know
// server/discover is started again with a legacy handshake. ctx limits the dial, not the life of
// the process. If the deadline of ctx ends the dial, or ctx ends while a package runner installs
// the server, the process tree is ended in the background, which takes up to Grace + KillAfter, or
// 10 s for a runner to undo its install. Closing the transport ends the process tree.
func (c Command) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	t, err := c.dialOnce(ctx, in, opts)
	if !errors.Is(err, transport.ErrProbe) || opts.Revision != "" || ctx.Err() != nil {
		return t, err
	}
	opts.Verdicts.Remember(c.Endpoint(), mcp.LatestLegacyRevision)
	t, again := c.dialOnce(ctx, in, opts)
	if again != nil {
		opts.Verdicts.Remember(c.Endpoint(), "")
		return nil, again
	}
	return t, nil
}

func (c Command) dialOnce(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	child, err := process.Command(c).Start(ctx)
	if err != nil {
		return nil, err
	}
	conn := &childConn{Conn: Conn(child, 0), child: child, dial: ctx}
	watch := watchStart(ctx, child)
	var t mcp.Transport
	if err = watch.awaitServing(conn); err == nil {
		t, err = overconn.Connect(ctx, conn, in, c.Endpoint(), opts)
	} else {
		_ = conn.Close() // err says more
	}
	phase := watch.endWatch()
	switch {
	case err != nil && conn.endsInBackground():
		return nil, &process.EndingError{Err: withStderr(describeInterruption(ctx, err, phase), child), Child: child}
	case err != nil:
		return nil, withStderr(err, child)
	}
	conn.connected.Store(true)
	child.MarkStarted()
	return &childTransport{t.(frames.ConnTransport), child}, nil
}

// withStderr adds the last lines of stderr to an error, unless it already contains them.
func withStderr(err error, child *process.Child) error {
	const lines = 10
	var exit *ExitError
	if tail := child.StderrTail(lines); tail != "" && !errors.As(err, &exit) {
		return fmt.Errorf("%w; the server's last words on stderr:\n\t%s", err, strings.ReplaceAll(tail, "\n", "\n\t"))
	}
	return err
}

// childTransport is a transport to a child. Closing it ends the child.
type childTransport struct {
	frames.ConnTransport
	child *process.Child
}

// childConn is a Conn that reports the exit of its child as the end of the stream.
type childConn struct {
	transport.Conn
	child     *process.Child
	dial      context.Context // of the dial
	connected atomic.Bool     // the dial has succeeded
	closed    sync.Once
	err       error
}

// endsInBackground reports whether the process is ended in the background: the deadline of the dial
// has ended it, or the dial has been ended during an install.
func (c *childConn) endsInBackground() bool {
	if c.connected.Load() || c.dial.Err() == nil {
		return false
	}
	return errors.Is(context.Cause(c.dial), context.DeadlineExceeded) || c.child.WasInstalling()
}

func (c *childConn) Read() ([]byte, error) {
	frame, err := c.Conn.Read()
	if err == nil || errors.Is(err, transport.ErrFrame) || errors.Is(err, os.ErrClosed) {
		return frame, err
	}
	if endless, ok := errors.AsType[*endlessLineError](err); ok {
		return nil, fmt.Errorf("%w: the server's stdout is unusable: %w", mcp.ErrConnection, endless)
	}
	return nil, c.explainEnd(err)
}

// explainEnd returns the error for a stream that has ended with err. It waits for the exit that
// most likely ended it: on a busy machine, a process may take seconds between the two.
func (c *childConn) explainEnd(err error) error {
	const moment = 5 * time.Second
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-c.child.Exited():
		return fmt.Errorf("%w: %w", mcp.ErrConnection, c.child.ExitError())
	case <-timer.C:
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the server closed its stdout and still runs", mcp.ErrConnection)
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

func (c *childConn) Close() error {
	c.closed.Do(func() {
		if c.endsInBackground() {
			go c.child.Close() // the caller of Dial has waited long enough
			return
		}
		c.err = c.child.Close()
	})
	return c.err
}
