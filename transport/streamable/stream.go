package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// readPosition is how far a stream has been read, and when to come back for the rest.
type readPosition struct {
	lastID    string
	retry     time.Duration
	events    int    // that were messages
	onRestart func() // called where the first event is that of a stream which begins: an id without data; nil for nobody
}

// readEvents gives the events of a body to take, until that is done or the body ends. An event that is too large is left out, and
// is the error where it may have been the response to a request.
func (c *carrier) readEvents(at *readPosition, resp *http.Response, request bool, take func(frame []byte) bool) (done bool, err error) {
	events := eventstream.NewReader(resp.Body, c.maxMessage)
	for first := true; ; {
		e, err := events.Next()
		if large, ok := errors.AsType[*eventstream.TooLargeError](err); ok {
			if request && !bytes.Contains(large.DataHead, []byte(`"method"`)) {
				return false, fmt.Errorf("the server's answer is larger than %d bytes: %w", c.maxMessage, errLarge)
			}
			c.logger.Warn("the server sent an event that is too large; it is left out", "limit", c.maxMessage)
			continue
		}
		if err != nil {
			return false, err
		}
		if first && e.HasID && len(e.Data) == 0 && at.onRestart != nil {
			at.onRestart()
		}
		first = false
		if e.HasID {
			at.lastID = e.ID
		}
		if e.Retry > 0 {
			at.retry = e.Retry
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		at.events++
		if take(e.Data) {
			drainBody(resp)
			return true, nil
		}
	}
}

// errLarge is the error for what is not read to its end.
var errLarge = errors.New("it was not read")

// drainBody reads the end of a stream that has said all, so that the connection can be used again.
func drainBody(resp *http.Response) {
	const patience, most = 50 * time.Millisecond, 4 << 10
	timer := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, most)
}

// readStream reads the answer to a request that is an event stream. One that is cut off is gone on with, where the server has
// numbered its events.
func (c *carrier) readStream(ctx context.Context, m *calling.Outbound, resp *http.Response, back calling.Receiver) error {
	at := &readPosition{retry: DefaultRetry}
	take := func(frame []byte) bool { return c.deliverFrame(m, frame, resp.Header, back) }
	back.Began(resp.Body)
	done, err := c.readEvents(at, resp, true, take)
	resp.Body.Close()
	var lost time.Time // since when nothing connects
	for failures := 0; !done; failures++ {
		switch {
		case !isUnreachable(err):
			lost = time.Time{}
		case lost.IsZero():
			lost = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isPermanent(err):
			return err
		case at.lastID == "" || m.Revision.Modern() || failures == maxResume || !lost.IsZero() && time.Since(lost) > maxUnreachable:
			return fmt.Errorf("%w: the event stream ended before the response: %w", mcp.ErrConnection, err)
		}
		seen := at.events
		wait := retryDelay(at.retry, failures)
		if !lost.IsZero() {
			wait = min(wait, max(at.retry, maxUnreachable/4))
		}
		if !sleepContext(ctx, wait) {
			return context.Cause(ctx)
		}
		done, err = c.resumeStream(ctx, m.Revision, at, back, take)
		if at.events > seen || err == io.EOF { // a server that is polled ends each stream well
			failures = -1
		}
	}
	return nil
}

// resumeStream asks for the rest of a stream.
func (c *carrier) resumeStream(ctx context.Context, revision mcp.Revision, at *readPosition, back calling.Receiver, take func([]byte) bool) (done bool, err error) {
	resp, err := c.openStream(ctx, at.lastID, revision)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	back.Began(resp.Body)
	return c.readEvents(at, resp, true, take)
}

const (
	maxResume      = 8                // attempts in a row that bring nothing
	maxUnreachable = 10 * time.Second // of a server that nothing connects to
)

// isUnreachable reports whether nobody listens where the server was.
func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// retryDelay is how long to wait before a stream is asked for again: what the server says, and longer where it was to no avail.
func retryDelay(retry time.Duration, failures int) time.Duration {
	const least, most = 20 * time.Millisecond, 30 * time.Second
	if failures == 0 {
		return max(retry, least)
	}
	wait := min(max(min(retry, most), 100*time.Millisecond)<<min(failures, 10), most)
	return wait/2 + rand.N(wait/2+1)
}

func sleepContext(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isPermanent reports whether an error will not go away by itself.
func isPermanent(err error) bool {
	var answered *overhttp.HTTPError
	return errors.Is(err, ErrSessionLost) || errors.Is(err, errLarge) || errors.As(err, &answered) && answered.Status < 500 && answered.Status != http.StatusTooManyRequests
}

// openStream asks for a stream of the session.
func (c *carrier) openStream(ctx context.Context, last string, revision mcp.Revision) (*http.Response, error) {
	r, err := c.newRequest(ctx, http.MethodGet, &calling.Outbound{Revision: revision})
	if err != nil {
		return nil, err
	}
	if last != "" {
		r.Header[mcp.HeaderLastEventID] = []string{last}
	}
	resp, err := c.sendRequest(r)
	if err != nil {
		return nil, c.requestError(ctx, err)
	}
	if sent := r.Header[mcp.HeaderSessionID]; resp.StatusCode == http.StatusNotFound && last != "" && len(sent) > 0 {
		resp.Body.Close()
		c.reportLostSession(sent[0])
		return nil, ErrSessionLost
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		defer resp.Body.Close()
		return nil, overhttp.NewHTTPError(resp)
	}
	return resp, nil
}

// startSessionStream begins to read the standing stream of a legacy session, on which the server sends what belongs to no call.
//
// It returns when the server has answered, or has not for a moment: what a call changes from then on is told.
func (c *carrier) startSessionStream() {
	const moment = 500 * time.Millisecond
	ready := make(chan struct{})
	c.mu.Lock()
	if c.closed || c.streamStarted {
		c.mu.Unlock()
		return
	}
	c.streamStarted = true
	c.streamReader.Go(func() { c.readSessionStream(sync.OnceFunc(func() { close(ready) })) })
	c.mu.Unlock()
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-ready:
	case <-timer.C:
	case <-c.life.Done():
	}
}

func (c *carrier) readSessionStream(ready func()) {
	defer ready()
	at := &readPosition{retry: DefaultRetry}
	opened := false
	for failures := 0; ; {
		seen, id, resumed := at.events, c.sessionID(), at.lastID != ""
		resp, err := c.openStream(c.life, at.lastID, c.caller.Speaks())
		ready()
		if err == nil {
			if opened && !resumed {
				c.caller.Interrupted()
			}
			failures, opened, at.onRestart = 0, true, nil
			if resumed {
				at.onRestart = c.caller.Interrupted // the server does not know the event any more
			}
			_, err = c.readEvents(at, resp, false, func(frame []byte) bool {
				frames.Show(c.tap, transport.Received, frame, resp.Header)
				c.caller.Receive(frame)
				return false
			})
			resp.Body.Close()
		}
		var answered *overhttp.HTTPError
		switch {
		case c.life.Err() != nil || errors.Is(err, ErrSessionLost):
			return
		case errors.As(err, &answered) && (answered.Status == http.StatusMethodNotAllowed || answered.Status == http.StatusNotFound && !opened):
			return // the server has no such stream
		case answered != nil && (answered.Status == http.StatusNotFound || opened && isSessionDenied(answered)):
			c.reportLostSession(id)
			return
		case isPermanent(err) && at.lastID != "":
			at.lastID = "" // the server does not know the event any more
		case isPermanent(err):
			c.logger.Warn("the server's stream of notifications cannot be read", "err", err)
			return
		}
		if at.events == seen {
			failures++
		}
		if !sleepContext(c.life, retryDelay(at.retry, max(0, failures-1))) {
			return
		}
	}
}
