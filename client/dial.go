package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// Dial connects to a server and returns a client that is ready. ctx bounds the dial only, not the
// client's life: call [Client.Close]. A nil opts is the zero [Options]. The target is one of
//
//   - a URL of http or https: Streamable HTTP of every revision, or the older HTTP+SSE,
//     depending on the server. A URL of ws or wss: WebSocket.
//   - a command: a [stdio.Command], or its words as a []string. The client starts the server, and
//     starts it again when it exits.
//   - an [mcp.Handler], such as a server of this process: no process, no port. A call with a
//     context that cannot end, such as context.Background(), may run the handler on its own
//     goroutine, and then returns when the handler does; see [memory.Dialer].
//   - a [transport.Dialer].
//   - an open [mcp.Transport], or an [io.ReadWriteCloser] that carries one message per line, such
//     as a net.Conn. The client takes ownership, and cannot reconnect. Over an open transport the
//     client receives neither the questions of legacy servers nor notifications that belong to no
//     call.
func Dial(ctx context.Context, target any, opts *Options) (*Client, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	to, err := parseTarget(target, o)
	if err != nil {
		return nil, err
	}
	if err := mcpwire.CheckPinned(o.Wire.Revision); err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := mcpwire.CheckExtensions(o.Extensions); err != nil {
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

// target is a parsed target of [Dial].
type target struct {
	dialer    transport.Dialer
	header    func(context.Context) (http.Header, error) // adds fields to each request; nil if unknown
	login     loginIdentifier                            // of the requests; nil without one
	oneShot   bool                                       // cannot be dialed again
	isCommand bool                                       // the server is a child process
	isPrivate bool                                       // only this client can dial it, so its era is remembered for this client only
}

// A wrappedTarget of this module dials another target in its own way: a server that one of several
// processes connects to for all.
type wrappedTarget interface {
	Inner() any
	Around(inner transport.Dialer) transport.Dialer
}

// parseTarget recognizes the kinds of targets that [Dial] documents.
func parseTarget(to any, o Options) (t target, err error) {
	switch to := to.(type) {
	case nil:
		return t, errors.New("dial: the target is nil")
	case string:
		if !isURL(to) {
			return t, fmt.Errorf("dial: %q is not a URL; pass a command as its words: []string{\"npx\", \"-y\", …}", to)
		}
		return newURLTarget(to, o), nil
	case []string:
		if len(to) == 0 || to[0] == "" {
			return t, errors.New("dial: the command is empty")
		}
		return target{dialer: stdio.Command{Path: to[0], Args: to[1:]}, isCommand: true}, nil
	case stdio.Command:
		return target{dialer: to, isCommand: true}, nil
	case streamable.URL:
		return target{dialer: to, header: to.Header, login: loginOf(to.Client)}, nil
	case sse.URL:
		return target{dialer: to, header: to.Header, login: loginOf(to.Client)}, nil
	case websocket.URL:
		return newSocketTarget(to), nil
	case wrappedTarget:
		t, err := parseTarget(to.Inner(), o)
		if err == nil {
			t.dialer = to.Around(t.dialer)
		}
		return t, err
	case transport.Dialer:
		return target{dialer: to}, nil
	case mcp.Handler:
		return target{dialer: memory.Dialer(to), isPrivate: true}, nil
	case mcp.Transport:
		return target{dialer: readyDialer(to), oneShot: true, isPrivate: true}, nil
	case io.ReadWriteCloser:
		return target{dialer: streamDialer(to), oneShot: true, isPrivate: true}, nil
	}
	return t, fmt.Errorf("dial: a %T is not a target: pass a URL, a command ([]string or stdio.Command), an mcp.Handler, a "+
		"transport.Dialer, an mcp.Transport or an io.ReadWriteCloser", to)
}

// oneShotDialer is a [transport.Dialer] for a target that is already open. Its connection calls
// Dial only once.
type oneShotDialer struct {
	dial        func(context.Context, mcp.Inbound, transport.ClientOptions) (mcp.Transport, error)
	description string
}

// readyDialer returns a dialer for an open transport.
func readyDialer(t mcp.Transport) oneShotDialer {
	return oneShotDialer{
		dial:        func(context.Context, mcp.Inbound, transport.ClientOptions) (mcp.Transport, error) { return t, nil },
		description: fmt.Sprintf("a server behind a %T", t),
	}
}

// streamDialer returns a dialer for a server at the other end of a stream.
func streamDialer(rwc io.ReadWriteCloser) oneShotDialer {
	return oneShotDialer{
		dial: func(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
			return overconn.Connect(ctx, stdio.Conn(rwc, 0), in, "", opts)
		},
		description: "a server at the other end of a stream",
	}
}

func (d oneShotDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	return d.dial(ctx, in, opts)
}

func (d oneShotDialer) Endpoint() string { return "" }

func (d oneShotDialer) String() string { return d.description }

func newClient(to target, o Options) *Client {
	c := &Client{opts: o, header: to.header, login: to.login, userTurn: make(chan struct{}, 1)}
	c.notifications.handle = c.deliverNotification
	c.notifications.logger = o.Logger
	if !mcpwire.DefinesTasks(o.Extensions) {
		c.withTasks, _ = mcp.Encode(mcpwire.MergeCapabilities(o.declaredCapabilities(), mcpwire.NeedsTasks())) // a mistake fails the dial
	}
	c.conn = &connection{
		dialer:    to.dialer,
		oneShot:   to.oneShot,
		options:   o.transportOptions(),
		restart:   o.Restart,
		isCommand: to.isCommand,
		answer:    mcp.HandlerFunc(c.answerLegacyQuestion),
		notify:    c.handleNotification,
		reset:     c.forgetServer,
		onState:   o.OnState,
		retryNow:  make(chan struct{}, 1),
		changed:   make(chan struct{}),
	}
	c.conn.connectLimit = c.conn.reachLimit(o.Limits.Connect, o.Limits.Start)
	c.conn.installLimit = o.Limits.Install
	c.conn.lifetime, c.conn.endLifetime = context.WithCancel(context.Background())
	return c
}

// forgetServer drops all cached results and schemas, because changes may have been missed.
func (c *Client) forgetServer() {
	c.cache.clear()
	c.outputSchemas.clear()
}
