package sse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// acceptTimeout bounds how long a server may take to accept a notification or a response.
const acceptTimeout = 30 * time.Second

// Write implements [transport.Conn] and sends a POST. A notification or response has been accepted
// when Write returns, so messages keep their order. Some servers answer the POST of a request only
// after they have served it, so Write waits only half a second for it. A later failure fails the
// request, or the connection if the server has sent no message yet.
func (c *conn) Write(frame []byte) error {
	msg, err := jsonrpc.Parse(frame, nil)
	if err != nil || !msg.IsRequest() {
		ctx, cancel := context.WithTimeoutCause(c.life, acceptTimeout, fmt.Errorf("the server has not accepted a message in %v", acceptTimeout))
		defer cancel()
		return c.postMessage(ctx, frame)
	}
	if c.life.Err() != nil {
		return c.closeError()
	}
	const maxWait = 500 * time.Millisecond
	accepted, waitEnded := make(chan error), make(chan struct{})
	c.tasks.Go(func() {
		err := c.postMessage(c.life, frame)
		select {
		case accepted <- err:
		case <-waitEnded:
			c.deliverRefusal(msg.ID, err)
		}
	})
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case err := <-accepted:
		return err
	case <-timer.C:
		close(waitEnded)
		return nil
	}
}

// postMessage sends a POST that the server must accept. If the server does not know the session,
// the connection ends.
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
	const maxDrain = time.Second // for reading the rest, so that the HTTP connection can be reused
	defer time.AfterFunc(maxDrain, cancel).Stop()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		err := newHTTPError(resp)
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
			err := fmt.Errorf("%w: the server does not know the session: %w", mcp.ErrConnection, err)
			c.cancel(err)
			return err
		}
		return err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	return nil
}

// deliverRefusal reports to the caller of a request that the server has not accepted it.
func (c *conn) deliverRefusal(id jsonrpc.ID, err error) {
	switch {
	case err == nil || c.life.Err() != nil:
	case c.hasMessages.Load():
		c.deliver(incoming{err: &refusedError{transport.FrameError{Reason: "a request was not accepted", ID: id}, err}})
	default:
		c.deliver(incoming{err: fmt.Errorf("%w: %w", mcp.ErrConnection, err)})
	}
}

// refusedError is delivered instead of the response to a request that the server has not accepted.
type refusedError struct {
	transport.FrameError
	reason error
}

func (e *refusedError) Error() string { return e.Reason + ": " + e.reason.Error() }

func (e *refusedError) Unwrap() []error { return []error{&e.FrameError, e.reason} }

// newRequest makes a request with the header fields of the user and of the protocol. ctx bounds the
// Header function and a POST. A GET lasts as long as the connection.
func (c *conn) newRequest(ctx context.Context, method string, to *url.URL, frame []byte) (*http.Request, error) {
	lifetime := c.life
	var body io.Reader
	if method == http.MethodPost {
		body, lifetime = bytes.NewReader(frame), ctx
	}
	r, err := http.NewRequestWithContext(lifetime, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	if err := c.endpoint.AddHeader(ctx, r.Header); err != nil {
		return nil, err
	}
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Cache-Control", "no-store")
		return r, nil
	}
	r.Header.Set("Content-Type", "application/json")
	if revision := c.revision.Load(); revision != nil && *revision >= mcp.Revision20250618 {
		r.Header.Set("Mcp-Protocol-Version", string(*revision))
	}
	return r, nil
}

// requestError returns the error of a request that got no answer.
func (c *conn) requestError(ctx context.Context, err error) error {
	if c.life.Err() != nil {
		return c.closeError()
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", mcp.ErrConnection, context.Cause(ctx))
	}
	if refused := httpwire.AsRefusal(err); refused != nil {
		return refused
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, httpwire.WithoutURL(err))
}

func isEventStream(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == "text/event-stream"
}

// tooLargeError returns the error for a message over the limit. It tells the beginning and the end
// of it.
func tooLargeError(e *eventstream.TooLargeError) error {
	return frames.TooLarge(e.Size, e.Limit, e.DataHead, e.DataTail)
}

// newHTTPError reads the error of an answer that is not a success. The caller closes the response's
// body.
func newHTTPError(r *http.Response) *streamable.HTTPError {
	return &streamable.HTTPError{
		Status: r.StatusCode, Header: r.Header, Body: httpwire.ReadErrorBody(r, httpwire.MaxErrorBody), SentCredentials: httpwire.SentCredentials(r),
	}
}
