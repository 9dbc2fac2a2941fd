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
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/calling"
)

// readPosition is the position in a stream from which to resume it.
type readPosition struct {
	lastID    string
	retry     time.Duration
	events    int    // the number of messages read
	onRestart func() // called if the stream begins anew: its first event has an id and no data; may be nil
}

// readEvents passes the messages of a body to take, until take returns true or the body ends. An
// event that is too large is skipped. If it may be the response to a request, that is the error.
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

// errLarge is wrapped by the error for a response that is too large to read.
var errLarge = errors.New("the rest was not read")

// drainBody reads the end of a stream after its last event, so that the connection can be reused.
func drainBody(resp *http.Response) {
	const maxWait, maxBytes = 50 * time.Millisecond, 4 << 10
	timer := time.AfterFunc(maxWait, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBytes)
}

// readStream reads an answer that is an event stream. If it is cut off and the server has numbered
// its events, readStream resumes it.
func (c *carrier) readStream(ctx context.Context, m *calling.Outbound, resp *http.Response, back calling.Receiver) error {
	at := &readPosition{retry: defaultRetry}
	take := func(frame []byte) bool { return c.deliverFrame(m, frame, resp.Header, back) }
	back.Began(resp.Body)
	done, err := c.readEvents(at, resp, true, take)
	resp.Body.Close()
	var unreachableSince time.Time // when connecting first failed; zero while it succeeds
	for failures := 0; !done; failures++ {
		switch {
		case !isUnreachable(err):
			unreachableSince = time.Time{}
		case unreachableSince.IsZero():
			unreachableSince = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case back.IsAnswered():
			return nil
		case isPermanent(err):
			return err
		case at.lastID == "" || m.Revision.Modern() || failures == maxResume || !unreachableSince.IsZero() && time.Since(unreachableSince) > maxUnreachable:
			return fmt.Errorf("%w: the event stream ended before the response: %w", mcp.ErrConnection, err)
		}
		seen := at.events
		wait := retryDelay(at.retry, failures)
		if !unreachableSince.IsZero() {
			wait = min(wait, max(at.retry, maxUnreachable/4))
		}
		if timeout.Sleep(ctx, wait) != nil {
			return context.Cause(ctx)
		}
		done, err = c.resumeStream(ctx, m.Revision, at, back, take)
		if at.events > seen || err == io.EOF { // a server may end each stream early and expect the client to poll
			failures = -1
		}
	}
	return nil
}

// resumeStream requests the rest of a stream and reads it.
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
	maxResume      = 8                // attempts in a row without a new message
	maxUnreachable = 10 * time.Second // for which connecting may fail
)

// isUnreachable reports whether the connection to the server could not be made.
func isUnreachable(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// retryDelay returns how long to wait before a stream is requested again: the time that the server
// asks for, and longer after failures.
func retryDelay(retry time.Duration, failures int) time.Duration {
	const minDelay, maxDelay = 20 * time.Millisecond, 30 * time.Second
	if failures == 0 {
		return max(retry, minDelay)
	}
	wait := min(max(min(retry, maxDelay), 100*time.Millisecond)<<min(failures, 10), maxDelay)
	return wait/2 + rand.N(wait/2+1)
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	var answered *HTTPError
	return errors.Is(err, ErrSessionLost) || errors.Is(err, errLarge) || httpwire.AsRefusal(err) != nil || errors.As(err, &answered) && answered.Status < 500 && answered.Status != http.StatusTooManyRequests
}

// openStream requests the session stream, or the events of a stream after the one with id last.
func (c *carrier) openStream(ctx context.Context, last string, revision mcp.Revision) (*http.Response, error) {
	r, err := c.newRequest(ctx, http.MethodGet, &calling.Outbound{Revision: revision})
	if err != nil {
		return nil, err
	}
	if last != "" {
		r.Header[mcpwire.HeaderLastEventID] = []string{last}
	}
	resp, err := c.sendRequest(r)
	if err != nil {
		return nil, c.requestError(ctx, err)
	}
	if sent := r.Header[mcpwire.HeaderSessionID]; resp.StatusCode == http.StatusNotFound && last != "" && len(sent) > 0 {
		resp.Body.Close()
		c.reportLostSession(sent[0])
		return nil, ErrSessionLost
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		defer resp.Body.Close()
		return nil, newHTTPError(resp)
	}
	return resp, nil
}

// startSessionStream starts reading the session stream of a legacy session.
func (c *carrier) startSessionStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.streamStarted {
		return
	}
	c.streamStarted = true
	endWait := sync.OnceFunc(func() { close(c.streamOpen) })
	time.AfterFunc(streamWait, endWait)
	c.streamReader.Go(func() { c.readSessionStream(endWait) })
}

// streamWait is how long requests wait for the session stream after Dial. Some servers send the
// header of the stream only with its first event.
const streamWait = 500 * time.Millisecond

// AwaitStream implements [calling.StreamOpener].
func (c *carrier) AwaitStream(ctx context.Context) {
	select {
	case <-c.streamOpen:
		return
	default:
	}
	c.mu.Lock()
	isStarted := c.streamStarted
	c.mu.Unlock()
	if !isStarted {
		return
	}
	select {
	case <-c.streamOpen:
	case <-ctx.Done():
	case <-c.life.Done():
	}
}

func (c *carrier) readSessionStream(ready func()) {
	defer ready()
	at := &readPosition{retry: defaultRetry}
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
				at.onRestart = c.caller.Interrupted // the server has forgotten the event
			}
			_, err = c.readEvents(at, resp, false, func(frame []byte) bool {
				c.showFrame(transport.Received, frame, resp.Header)
				c.caller.Receive(frame)
				return false
			})
			resp.Body.Close()
		}
		var answered *HTTPError
		switch {
		case c.life.Err() != nil || errors.Is(err, ErrSessionLost):
			return
		case errors.As(err, &answered) && (answered.Status == http.StatusMethodNotAllowed || answered.Status == http.StatusNotFound && !opened):
			return // the server has no session stream
		case answered != nil && (answered.Status == http.StatusNotFound || opened && isSessionDenied(answered)):
			c.reportLostSession(id)
			return
		case isPermanent(err) && at.lastID != "":
			at.lastID = "" // the server has forgotten the event
		case isPermanent(err):
			c.logger.Warn("the server's stream of notifications cannot be read", "err", err)
			return
		}
		if at.events == seen {
			failures++
		}
		if timeout.Sleep(c.life, retryDelay(at.retry, max(0, failures-1))) != nil {
			return
		}
	}
}
