package client

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// Dial connects to a server and returns a client that is ready. ctx bounds the dial only, not the client's life: call
// [Client.Close]. A nil opts is the zero [Options]. The target is one of
//
//   - a URL of http or https: Streamable HTTP, of every revision, or the older HTTP+SSE, whichever the server speaks.
//   - a command: a [stdio.Command], or its words as a []string. The server is started, and again when it dies.
//   - an [mcp.Handler], such as a server of this process: no process, no port.
//   - a [transport.Dialer].
//   - an [mcp.Transport] that is ready, or an [io.ReadWriteCloser] that carries one message a line, such as a
//     net.Conn. They become the client's, and when they are lost they are not restored. Over a ready transport the
//     client hears neither of questions of legacy servers nor of notifications that belong to no call.
func Dial(ctx context.Context, target any, opts *Options) (*Client, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	to, err := parseTarget(target, o)
	if err != nil {
		return nil, err
	}
	if err := (&transport.ClientOptions{Revision: o.Wire.Revision}).Check(); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	o.setDefaults(to)
	c := newClient(to, o)
	c.conn.enterState(State{Status: Connecting})
	if err := c.conn.openLink(ctx); err != nil {
		err = fmt.Errorf("dial %s: %w", c.serverName(), err)
		c.conn.enterState(State{Status: Failed, Err: err})
		c.Close()
		return nil, err
	}
	return c, nil
}

// target is a way to reach a server.
type target struct {
	dialer transport.Dialer
	oneShot   bool // it cannot be dialed again
	isCommand bool // it is a command
	isPrivate    bool // nobody else can dial it: what is learned of its era is of use to this client only
}

// parseTarget is the one place that knows the ways to reach a server.
func parseTarget(to any, o Options) (t target, err error) {
	switch to := to.(type) {
	case nil:
		return t, errors.New("dial: there is no target")
	case string:
		if !isURL(to) {
			return t, fmt.Errorf("dial: %q is no URL; pass a command as its words, []string{\"npx\", \"-y\", …}, so that none has to be guessed", to)
		}
		return target{dialer: newURLDialer(to, o)}, nil
	case []string:
		if len(to) == 0 || to[0] == "" {
			return t, errors.New("dial: the command is empty")
		}
		return target{dialer: stdio.Command{Path: to[0], Args: to[1:]}, isCommand: true}, nil
	case stdio.Command:
		return target{dialer: to, isCommand: true}, nil
	case transport.Dialer:
		return target{dialer: to}, nil
	case mcp.Handler:
		return target{dialer: memory.Dialer(to), isPrivate: true}, nil
	case mcp.Transport:
		return target{dialer: readyTransport{to}, oneShot: true, isPrivate: true}, nil
	case io.ReadWriteCloser:
		return target{dialer: stdio.Stream(to), oneShot: true, isPrivate: true}, nil
	}
	return t, fmt.Errorf("dial: a %T is no target: pass a URL, a command ([]string or stdio.Command), an mcp.Handler, a "+
		"transport.Dialer, an mcp.Transport or an io.ReadWriteCloser", to)
}

// readyTransport dials a transport that is there already.
type readyTransport struct{ transport mcp.Transport }

func (r readyTransport) Dial(context.Context, mcp.Inbound, transport.ClientOptions) (mcp.Transport, error) {
	return r.transport, nil
}

func (r readyTransport) Endpoint() string { return "" }

func (r readyTransport) String() string { return fmt.Sprintf("a server behind a %T", r.transport) }

func newClient(to target, o Options) *Client {
	c := &Client{opts: o, userTurn: make(chan struct{}, 1)}
	c.notifications.handle = c.deliverNotification
	c.notifications.logger = o.Logger
	c.conn = &connection{
		dialer:  to.dialer,
		oneShot:    to.oneShot,
		options: o.transportOptions(),
		restart: o.Restart,
		isCommand:  to.isCommand,
		answer:  mcp.HandlerFunc(c.answerLegacyQuestion),
		notify:  c.handleNotification,
		reset:   c.forgetServer,
		onState: o.OnState,
		retryNow:    make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	c.conn.connectLimit = c.conn.reachLimit(o.Limits.Connect, o.Limits.Start)
	c.conn.lifetime, c.conn.endLifetime = context.WithCancel(context.Background())
	return c
}

// forgetServer forgets what a connection taught that is no more: changes may have been missed.
func (c *Client) forgetServer() {
	c.cache.clear()
	c.outputSchemas.clear()
}
