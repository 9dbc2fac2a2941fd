package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// conn is the client's end of a session, a [transport.Conn].
type conn struct {
	client         *http.Client
	endpoint       httpwire.Endpoint
	tap            transport.Tap
	closeIdleConns func() // closes idle HTTP connections of a client that conn has made
	postURL        *url.URL

	life         context.Context
	cancel       context.CancelCauseFunc
	tasks        sync.WaitGroup // the reader of the stream, and POSTs
	incoming     chan incoming
	streamHeader http.Header // of the response to the GET
	hasMessages  atomic.Bool // the server has sent a message

	revision atomic.Pointer[mcp.Revision] // the negotiated revision; nil before the answer to initialize
}

// incoming is a result of Read.
type incoming struct {
	frame []byte
	err   error
}

// openTimeout bounds how long a server may take, except for a login, to open a stream and send its
// endpoint.
const openTimeout = 30 * time.Second

// openAt opens the stream at a URL and waits for its endpoint.
func (u URL) openAt(ctx context.Context, at *url.URL, tap transport.Tap) (*conn, error) {
	ctx, cancel := startphase.WithTimeout(ctx, openTimeout, fmt.Errorf("the server sent no endpoint within %v", openTimeout))
	defer cancel()
	c := u.newConn(ctx, tap)
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	err := c.openAndRead(ctx, at)
	if !stop() && err == nil {
		err = context.Cause(c.life)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (u URL) newConn(ctx context.Context, tap transport.Tap) *conn {
	c := &conn{endpoint: httpwire.Endpoint(u), tap: tap, incoming: make(chan incoming), closeIdleConns: func() {}}
	c.life, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	client := u.Client
	if client == nil {
		t := httpwire.NewTransport()
		client, c.closeIdleConns = &http.Client{Transport: t}, t.CloseIdleConnections
	}
	c.client = httpwire.GuardRedirects(client)
	return c
}

func (c *conn) openAndRead(ctx context.Context, at *url.URL) error {
	r, err := c.newRequest(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	client := *c.client
	client.Timeout = 0
	resp, err := client.Do(r)
	if err != nil {
		return c.requestError(c.life, err)
	}
	if resp.StatusCode != http.StatusOK || !isEventStream(resp.Header) {
		defer resp.Body.Close()
		return notAStream(resp)
	}
	c.streamHeader = resp.Header
	events := eventstream.NewReader(resp.Body, c.endpoint.Limit())
	if c.postURL, err = c.readEndpoint(events, resp.Request.URL); err != nil {
		resp.Body.Close()
		return err
	}
	c.tasks.Go(func() {
		defer resp.Body.Close()
		c.readMessages(events)
	})
	return nil
}

// notAStream returns the error for an answer to the GET that is not an event stream.
func notAStream(resp *http.Response) error {
	err := newHTTPError(resp)
	if resp.StatusCode == http.StatusOK {
		return fmt.Errorf("the server's answer to GET is not an event stream but %q: %w", resp.Header.Get("Content-Type"), err)
	}
	return err
}

// readEndpoint reads the events up to the one with the endpoint, and returns that.
func (c *conn) readEndpoint(events *eventstream.Reader, stream *url.URL) (*url.URL, error) {
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, eventstream.ErrTooLarge):
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: the server ended the stream without sending an endpoint", mcp.ErrConnection)
		case err != nil:
			return nil, c.requestError(c.life, err)
		case e.Name == "endpoint":
			return resolveEndpoint(stream, string(e.Data))
		}
	}
}

// resolveEndpoint returns the endpoint in the server's event, resolved against the URL of the
// stream. It must have the same origin: no other server may receive the client's messages and
// credentials.
func resolveEndpoint(stream *url.URL, reference string) (*url.URL, error) {
	ref, err := url.Parse(strings.TrimSpace(reference))
	if err != nil || reference == "" {
		const maxShown = 100
		return nil, fmt.Errorf("the server's endpoint event contains no valid URL: %.*q", maxShown, reference)
	}
	to := stream.ResolveReference(ref)
	if !httpwire.SameOrigin(stream, to) {
		return nil, fmt.Errorf("the server's endpoint event points to another origin: %s, where the stream is at %s", httpwire.Origin(to), httpwire.Origin(stream))
	}
	to.User = stream.User
	return to, nil
}

// readMessages passes the messages of the stream to Read.
func (c *conn) readMessages(events *eventstream.Reader) {
	for {
		e, err := events.Next()
		var large *eventstream.TooLargeError
		switch {
		case errors.As(err, &large):
			c.deliver(incoming{err: tooLargeError(large)})
		case err != nil:
			c.deliver(incoming{err: streamEndError(err)})
			return
		case e.Name == "" && len(e.Data) > 0:
			c.noteRevision(e.Data)
			c.deliver(incoming{frame: e.Data})
		}
	}
}

// streamEndError returns the error for the end of the stream.
func streamEndError(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the server has ended the stream", mcp.ErrConnection)
	}
	return fmt.Errorf("%w: the stream was cut off: %w", mcp.ErrConnection, err)
}

// deliver makes Read return a result. It gives up if the connection ends.
func (c *conn) deliver(i incoming) {
	select {
	case c.incoming <- i:
	case <-c.life.Done():
	}
}

// noteRevision reads the negotiated revision from the answer to initialize, which is the first
// result.
func (c *conn) noteRevision(frame []byte) {
	c.hasMessages.Store(true)
	if c.revision.Load() != nil || rawjson.CheckAll(frame) != nil || !rawjson.IsObject(frame) {
		return
	}
	result := rawjson.Lookup(frame, "result")
	if result == nil || !rawjson.IsObject(result) {
		return
	}
	if revision, ok := rawjson.String(rawjson.Lookup(result, "protocolVersion")); ok {
		c.revision.Store(new(mcp.Revision(revision)))
	}
}

// showReceived is the tap for received frames. Sent ones are shown with the header fields of their
// POST.
func (c *conn) showReceived(f transport.Frame) {
	if f.Kind != transport.Sent {
		frames.Show(c.tap, f.Kind, f.Data, c.streamHeader)
	}
}

// Read implements [transport.Conn].
func (c *conn) Read() ([]byte, error) {
	select {
	case i := <-c.incoming:
		return i.frame, i.err
	case <-c.life.Done():
		return nil, c.closeError()
	}
}

// closeError returns the reason for the end of the connection.
func (c *conn) closeError() error {
	if cause := context.Cause(c.life); !errors.Is(cause, mcp.ErrClosed) {
		return cause
	}
	return mcp.ErrClosed
}

// Close implements [transport.Conn].
func (c *conn) Close() error {
	c.cancel(mcp.ErrClosed)
	c.tasks.Wait()
	c.closeIdleConns()
	return nil
}
