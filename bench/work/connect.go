package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/bench/peers"
	"github.com/dowel-mcp/dowel/bench/side"
)

// wire is a way to connect a client with a server of the same implementation.
type wire struct {
	name, title string
	connect     func(ctx context.Context, p peer.Peer, era peer.Era, tools int) (*connection, error)
}

var (
	memory = wire{"memory", "in memory", inMemory}
	pipes  = wire{"pipes", "OS pipes", overPipes}
	child  = wire{"child", "child process on stdio", toChild}
	web    = wire{"http", "HTTP", overHTTP(false)}
	stream = wire{"stream", "HTTP, event-stream answer", overHTTP(true)}
)

// connection is a connected client, with the functions that end the connection.
type connection struct {
	peer.Session
	used func() (side.Usage, error) // of client and server
	end  []func()                   // called in this order after the session is closed
}

// close ends the connection. It ignores errors, because closing is not measured.
func (c *connection) close() {
	if c.Session != nil {
		_ = c.Session.Close()
	}
	for _, end := range c.end {
		end()
	}
}

// dial connects the session of a connection. If that fails, it closes the connection.
func (c *connection) dial(ctx context.Context, p peer.Peer, t peer.Target, era peer.Era) (*connection, error) {
	s, err := p.Dial(ctx, t, era)
	if err != nil {
		c.close()
		return nil, err
	}
	c.Session = s
	return c, nil
}

// echo returns an operation that calls the tool and checks the answer.
func (c *connection) echo(message string) func() error {
	ctx := context.Background() // as in the quick starts of the implementations
	return func() error {
		got, err := c.Call(ctx, message)
		if err == nil && got != message {
			err = fmt.Errorf("the echo of %.20q (%d bytes) is %.20q (%d bytes)", message, len(message), got, len(got))
		}
		return err
	}
}

func inMemory(ctx context.Context, p peer.Peer, era peer.Era, tools int) (*connection, error) {
	c := &connection{used: here}
	return c.dial(ctx, p, peer.Target{Server: p.NewServer(tools)}, era)
}

// duplex is a stream of two pipes.
type duplex struct {
	io.Reader
	io.WriteCloser
	r io.Closer
}

func (d duplex) Close() error { return errors.Join(d.WriteCloser.Close(), d.r.Close()) }

func overPipes(ctx context.Context, p peer.Peer, era peer.Era, tools int) (*connection, error) {
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	served := make(chan struct{})
	serving, stop := context.WithCancel(context.Background())
	go func() {
		defer close(served)
		_ = p.NewServer(tools).Serve(serving, duplex{r1, w2, r1}) // fails if the client closes first
	}()
	c := &connection{used: here, end: []func(){stop, func() { <-served }}}
	return c.dial(ctx, p, peer.Target{Stream: duplex{r2, w1, r2}}, era)
}

func toChild(ctx context.Context, p peer.Peer, era peer.Era, tools int) (*connection, error) {
	server, err := side.New(side.Options{Peer: p, Era: era, Tools: tools})
	if err != nil {
		return nil, err
	}
	met := make(chan error, 1)
	go func() { met <- server.Met() }()
	c := &connection{end: []func(){func() { server.Close() }}}
	c.used = func() (side.Usage, error) {
		theirs, err := server.Used(false)
		return side.Used(false).And(theirs), err
	}
	if c, err = c.dial(ctx, p, peer.Target{Command: server.Args}, era); err != nil {
		return nil, err
	}
	return c, <-met
}

// conns is the number of idle connections that a client may keep, at least the calls in flight.
const conns = 128

func overHTTP(stream bool) func(context.Context, peer.Peer, peer.Era, int) (*connection, error) {
	return func(ctx context.Context, p peer.Peer, era peer.Era, tools int) (*connection, error) {
		h, err := p.NewServer(tools).Handler(era, stream)
		if err != nil {
			return nil, err
		}
		return dialHTTP(ctx, p, h, era)
	}
}

func dialHTTP(ctx context.Context, p peer.Peer, h http.Handler, era peer.Era) (*connection, error) {
	served := httptest.NewServer(h)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	c := &connection{used: here, end: []func(){client.CloseIdleConnections, served.CloseClientConnections, served.Close}}
	return c.dial(ctx, p, peer.Target{URL: served.URL + "/mcp", HTTP: client}, era)
}

// connected returns an [Item.Measure] that connects, calls measure and disconnects. tools returns
// the number of the server's tools.
func connected(w wire, era peer.Era, tools func(Options) int, measure func(*connection, Options) (Result, error)) func(context.Context, string, Options) (Result, error) {
	return func(ctx context.Context, contestant string, o Options) (Result, error) {
		p, err := peers.Named(contestant)
		if err != nil {
			return nil, err
		}
		o = o.withDefaults()
		c, err := w.connect(ctx, p, era, tools(o))
		if err != nil {
			return nil, err
		}
		defer c.close()
		return measure(c, o)
	}
}

func one(Options) int { return 1 }
