package sse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// acceptTimeout bounds how long a server may take to accept what is no request.
const acceptTimeout = 30 * time.Second

// Write implements [transport.Conn]: it makes a POST. What is no request has been accepted when Write returns, and so keeps
// its place before what comes next. A request may not be: some servers answer its POST when they have served it. Write waits
// a moment for that; a failure that comes later is that of the request, and of the connection where it is the first one.
func (c *conn) Write(frame []byte) error {
	msg, err := jsonrpc.Parser{}.Parse(frame)
	if err != nil || !msg.IsRequest() {
		ctx, cancel := context.WithTimeoutCause(c.life, acceptTimeout, fmt.Errorf("the server has not accepted a message in %v", acceptTimeout))
		defer cancel()
		return c.postMessage(ctx, frame)
	}
	if c.life.Err() != nil {
		return c.closeError()
	}
	const moment = 500 * time.Millisecond
	accepted, late := make(chan error), make(chan struct{})
	c.tasks.Go(func() {
		err := c.postMessage(c.life, frame)
		select {
		case accepted <- err:
		case <-late:
			c.deliverRefusal(msg.ID, err)
		}
	})
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case err := <-accepted:
		return err
	case <-timer.C:
		close(late)
		return nil
	}
}

// postMessage makes a POST that the server has to accept. A server that does not know the session ends it.
func (c *conn) postMessage(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := c.newRequest(ctx, http.MethodPost, c.postURL, frame)
	if err != nil {
		return err
	}
	frames.Show(c.tap, transport.Sent, frame, r.Header)
	resp, err := c.client.Do(r)
	if err != nil {
		return c.requestError(ctx, err)
	}
	defer resp.Body.Close()
	const moment = time.Second // for the rest, which is of no use but for using the connection again
	defer time.AfterFunc(moment, cancel).Stop()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		err := overhttp.NewHTTPError(resp)
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
			lost := fmt.Errorf("%w: the server does not know the session: %w", mcp.ErrConnection, err)
			c.cancel(lost)
			return lost
		}
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// deliverRefusal tells who waits for a request that it was not accepted.
func (c *conn) deliverRefusal(id jsonrpc.ID, err error) {
	switch {
	case err == nil || c.life.Err() != nil:
	case c.hasMessages.Load():
		c.deliver(incoming{err: &refusedError{transport.FrameError{Reason: "a request was not accepted", ID: id}, err}})
	default:
		c.deliver(incoming{err: fmt.Errorf("%w: %w", mcp.ErrConnection, err)})
	}
}

// refusedError takes the place of the response to a request that the server has not accepted.
type refusedError struct {
	transport.FrameError
	reason error
}

func (e *refusedError) Error() string { return e.Reason + ": " + e.reason.Error() }

func (e *refusedError) Unwrap() []error { return []error{&e.FrameError, e.reason} }

// newRequest makes a request with the header fields of the protocol and those of the user. ctx is for them; the request
// itself lasts as long as the connection, or a POST as long as ctx.
func (c *conn) newRequest(ctx context.Context, method string, to *url.URL, frame []byte) (*http.Request, error) {
	life := c.life
	var body io.Reader
	if method == http.MethodPost {
		body, life = bytes.NewReader(frame), ctx
	}
	r, err := http.NewRequestWithContext(life, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	if c.header != nil {
		more, err := c.header(ctx)
		if err != nil {
			return nil, fmt.Errorf("the header of a request: %w", err)
		}
		for name, values := range more {
			r.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Cache-Control", "no-store")
		return r, nil
	}
	r.Header.Set("Content-Type", "application/json")
	if spoken := c.revision.Load(); spoken != nil && *spoken >= mcp.Revision20250618 {
		r.Header.Set("Mcp-Protocol-Version", string(*spoken))
	}
	return r, nil
}

// requestError is the error of a request that has no answer.
func (c *conn) requestError(ctx context.Context, err error) error {
	if c.life.Err() != nil {
		return c.closeError()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, context.Cause(ctx))
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which may hold secrets
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

func isEventStream(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "text/event-stream"
}

// tooLargeError is what is known of a message that was over the limit.
func tooLargeError(e *eventstream.TooLargeError) error {
	return transport.TooLarge(e.Size, e.Limit, e.DataHead, e.DataTail)
}
