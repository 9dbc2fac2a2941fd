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
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// cursor is how far a stream has been read, and when to come back for the rest.
type cursor struct {
	last   string
	retry  time.Duration
	events int    // that were messages
	begun  func() // called where the first event is that of a stream which begins: an id without data; nil for nobody
}

// read gives the events of a body to take, until that is done or the body ends. An event that is too large is left out, and
// is the error where it may have been the response to a request.
func (c *carrier) read(at *cursor, resp *http.Response, request bool, take func(frame []byte) bool) (done bool, err error) {
	events := eventstream.NewReader(resp.Body, c.max)
	for first := true; ; {
		e, err := events.Next()
		if large, ok := errors.AsType[*eventstream.TooLargeError](err); ok {
			if request && !bytes.Contains(large.DataHead, []byte(`"method"`)) {
				return false, fmt.Errorf("the server's answer is larger than %d bytes: %w", c.max, errLarge)
			}
			c.logger.Warn("the server sent an event that is too large; it is left out", "limit", c.max)
			continue
		}
		if err != nil {
			return false, err
		}
		if first && e.HasID && len(e.Data) == 0 && at.begun != nil {
			at.begun()
		}
		first = false
		if e.HasID {
			at.last = e.ID
		}
		if e.Retry > 0 {
			at.retry = e.Retry
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		at.events++
		if take(e.Data) {
			drain(resp)
			return true, nil
		}
	}
}

// errLarge is the error for what is not read to its end.
var errLarge = errors.New("it was not read")

// drain reads the end of a stream that has said all, so that the connection can be used again.
func drain(resp *http.Response) {
	const patience, most = 50 * time.Millisecond, 4 << 10
	timer := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, most)
}

// stream reads the answer to a request that is an event stream. One that is cut off is gone on with, where the server has
// numbered its events.
func (c *carrier) stream(ctx context.Context, m *transport.Outbound, resp *http.Response, back transport.Receiver) error {
	at := &cursor{retry: DefaultRetry}
	take := func(frame []byte) bool { return c.deliver(m, frame, resp.Header, back) }
	back.Began(resp.Body)
	done, err := c.read(at, resp, true, take)
	resp.Body.Close()
	var lost time.Time // since when nothing connects
	for failures := 0; !done; failures++ {
		switch {
		case !unreachable(err):
			lost = time.Time{}
		case lost.IsZero():
			lost = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case permanent(err):
			return err
		case at.last == "" || m.Revision.Modern() || failures == maxResume || !lost.IsZero() && time.Since(lost) > maxUnreachable:
			return fmt.Errorf("%w: the event stream ended before the response: %w", mcp.ErrConnection, err)
		}
		seen := at.events
		wait := pause(at.retry, failures)
		if !lost.IsZero() {
			wait = min(wait, max(at.retry, maxUnreachable/4))
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		done, err = c.resume(ctx, m.Revision, at, back, take)
		if at.events > seen || err == io.EOF { // a server that is polled ends each stream well
			failures = -1
		}
	}
	return nil
}

// resume asks for the rest of a stream.
func (c *carrier) resume(ctx context.Context, revision mcp.Revision, at *cursor, back transport.Receiver, take func([]byte) bool) (done bool, err error) {
	resp, err := c.get(ctx, at.last, revision)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	back.Began(resp.Body)
	return c.read(at, resp, true, take)
}

const (
	maxResume      = 8                // attempts in a row that bring nothing
	maxUnreachable = 10 * time.Second // of a server that nothing connects to
)

// unreachable reports whether nobody listens where the server was.
func unreachable(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// pause is how long to wait before a stream is asked for again: what the server says, and longer where it was to no avail.
func pause(retry time.Duration, failures int) time.Duration {
	const least, most = 20 * time.Millisecond, 30 * time.Second
	if failures == 0 {
		return max(retry, least)
	}
	wait := min(max(min(retry, most), 100*time.Millisecond)<<min(failures, 10), most)
	return wait/2 + rand.N(wait/2+1)
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// permanent reports whether an error will not go away by itself.
func permanent(err error) bool {
	var answered *overhttp.HTTPError
	return errors.Is(err, ErrSessionLost) || errors.Is(err, errLarge) || errors.As(err, &answered) && answered.Status < 500 && answered.Status != http.StatusTooManyRequests
}

// get asks for a stream of the session.
func (c *carrier) get(ctx context.Context, last string, revision mcp.Revision) (*http.Response, error) {
	r, err := c.request(ctx, http.MethodGet, &transport.Outbound{Revision: revision})
	if err != nil {
		return nil, err
	}
	if last != "" {
		r.Header[mcpwire.HeaderLastEventID] = []string{last}
	}
	resp, err := c.do(r)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if sent := r.Header[mcpwire.HeaderSessionID]; resp.StatusCode == http.StatusNotFound && last != "" && len(sent) > 0 {
		resp.Body.Close()
		c.lost(sent[0])
		return nil, ErrSessionLost
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		defer resp.Body.Close()
		return nil, overhttp.NewHTTPError(resp)
	}
	return resp, nil
}

// stand begins to read the standing stream of a legacy session, on which the server sends what belongs to no call.
//
// It returns when the server has answered, or has not for a moment: what a call changes from then on is told.
func (c *carrier) stand() {
	const moment = 500 * time.Millisecond
	ready := make(chan struct{})
	c.mu.Lock()
	if c.closed || c.standing {
		c.mu.Unlock()
		return
	}
	c.standing = true
	c.work.Go(func() { c.readStanding(sync.OnceFunc(func() { close(ready) })) })
	c.mu.Unlock()
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-ready:
	case <-timer.C:
	case <-c.life.Done():
	}
}

func (c *carrier) readStanding(ready func()) {
	defer ready()
	at := &cursor{retry: DefaultRetry}
	opened := false
	for failures := 0; ; {
		seen, id, resumed := at.events, c.sessionID(), at.last != ""
		resp, err := c.get(c.life, at.last, c.caller.Speaks())
		ready()
		if err == nil {
			if opened && !resumed {
				c.caller.Interrupted()
			}
			failures, opened, at.begun = 0, true, nil
			if resumed {
				at.begun = c.caller.Interrupted // the server does not know the event any more
			}
			_, err = c.read(at, resp, false, func(frame []byte) bool {
				c.tap.Show(transport.Received, frame, resp.Header)
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
		case answered != nil && (answered.Status == http.StatusNotFound || opened && deniesSession(answered)):
			c.lost(id)
			return
		case permanent(err) && at.last != "":
			at.last = "" // the server does not know the event any more
		case permanent(err):
			c.logger.Warn("the server's stream of notifications cannot be read", "err", err)
			return
		}
		if at.events == seen {
			failures++
		}
		if !sleep(c.life, pause(at.retry, max(0, failures-1))) {
			return
		}
	}
}
