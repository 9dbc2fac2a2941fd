package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// conn is the client's end of a session: a [transport.Conn].
type conn struct {
	client         *http.Client
	header         func(ctx context.Context) (http.Header, error)
	tap            transport.Tap
	closeIdleConns func() // gives up connections that are not used
	postURL        *url.URL

	life         context.Context
	cancel       context.CancelCauseFunc
	tasks        sync.WaitGroup // the stream's reader and POSTs
	incoming     chan incoming
	streamHeader http.Header // that it came with
	hasMessages  atomic.Bool // the server has sent a message

	revision atomic.Pointer[mcp.Revision] // what initialize came to; nil before
}

// incoming is what Read returns.
type incoming struct {
	frame []byte
	err   error
}

// openTimeout bounds how long a server may take to open a stream and tell its endpoint.
const openTimeout = 30 * time.Second

// openAt opens the stream at a URL and waits for its endpoint.
func (u URL) openAt(ctx context.Context, at *url.URL, tap transport.Tap) (*conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("the server has told no endpoint in %v", openTimeout))
	defer cancel()
	c := u.newConn(ctx, tap)
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	err := c.openAndRead(ctx, at, u.MaxMessage)
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
	c := &conn{header: u.Header, tap: tap, incoming: make(chan incoming), closeIdleConns: func() {}}
	c.life, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	client := u.Client
	if client == nil {
		client = &http.Client{}
		if own, ok := http.DefaultTransport.(*http.Transport); ok {
			const perHost = 64 // calls at the same time that use a connection again
			own = own.Clone()
			own.MaxIdleConnsPerHost = perHost
			client.Transport, c.closeIdleConns = own, own.CloseIdleConnections
		}
	}
	c.client = overhttp.Guarded(client)
	return c
}

func (c *conn) openAndRead(ctx context.Context, at *url.URL, limit int) error {
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
	if limit <= 0 {
		limit = transport.DefaultMaxMessage
	}
	c.streamHeader = resp.Header
	events := eventstream.NewReader(resp.Body, limit)
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

// notAStream is the error of an answer to GET that is none.
func notAStream(resp *http.Response) error {
	err := overhttp.NewHTTPError(resp)
	if resp.StatusCode == http.StatusOK {
		return fmt.Errorf("the server's answer to GET is no event stream but %q: %w", resp.Header.Get("Content-Type"), err)
	}
	return err
}

// readEndpoint reads up to the event that tells it.
func (c *conn) readEndpoint(events *eventstream.Reader, stream *url.URL) (*url.URL, error) {
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, eventstream.ErrTooLarge):
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: the server has ended the stream and told no endpoint", mcp.ErrConnection)
		case err != nil:
			return nil, c.requestError(c.life, err)
		case e.Name == "endpoint":
			return resolveEndpoint(stream, string(e.Data))
		}
	}
}

// readMessages takes the messages of the stream.
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

// streamEndError is the error of a stream that is over.
func streamEndError(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the server has ended the stream", mcp.ErrConnection)
	}
	return fmt.Errorf("%w: the stream was cut off: %w", mcp.ErrConnection, err)
}

// deliver has Read return something, unless the connection ends.
func (c *conn) deliver(i incoming) {
	select {
	case c.incoming <- i:
	case <-c.life.Done():
	}
}

// noteRevision learns the revision that is spoken from the answer to initialize, which comes before any other.
func (c *conn) noteRevision(frame []byte) {
	c.hasMessages.Store(true)
	if c.revision.Load() != nil || rawjson.CheckAll(frame) != nil || !rawjson.IsObject(frame) {
		return
	}
	result := rawjson.Lookup(frame, "result")
	if result == nil || !rawjson.IsObject(result) {
		return
	}
	if spoken, ok := rawjson.String(rawjson.Lookup(result, "protocolVersion")); ok {
		c.revision.Store(new(mcp.Revision(spoken)))
	}
}

// showReceived is the tap of what the stream brings; what is sent is shown with its POST.
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

// closeError is why the connection has ended.
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
