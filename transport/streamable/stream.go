package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// cursor is how far a stream has been read, and when to come back for the rest.
type cursor struct {
	last   string
	retry  time.Duration
	events int // that were messages
}

// read gives the events of a body to take, until that is done or the body ends.
func (c *carrier) read(at *cursor, resp *http.Response, take func(frame []byte) bool) (done bool, err error) {
	events := eventstream.NewReader(resp.Body, c.max)
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, eventstream.ErrTooLarge):
			c.logger.Warn("the server sent an event that is too large; it is left out", "limit", c.max)
			continue
		case err != nil:
			return false, err
		}
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

// drain reads the end of a stream that has said all, so that the connection can be used again.
func drain(resp *http.Response) {
	const patience, most = 50 * time.Millisecond, 4 << 10
	timer := time.AfterFunc(patience, func() { resp.Body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, most)
}

// stream reads the answer to a request that is an event stream. One that is cut off is gone on with, where the server has
// numbered its events.
func (c *carrier) stream(ctx context.Context, m *transport.Outbound, resp *http.Response, receive func([]byte) bool) error {
	at := &cursor{retry: DefaultRetry}
	take := func(frame []byte) bool { return c.deliver(m, frame, resp.Header, receive) }
	done, err := c.read(at, resp, take)
	for failures := 0; !done; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if at.last == "" || m.Revision.Modern() || failures == maxResume {
			return fmt.Errorf("%w: the event stream ended before the response: %w", mcp.ErrConnection, err)
		}
		resp.Body.Close()
		seen := at.events
		if !sleep(ctx, pause(at.retry, failures)) {
			return context.Cause(ctx)
		}
		if resp, err = c.get(ctx, at.last, m.Revision); err == nil {
			done, err = c.read(at, resp, take)
			resp.Body.Close()
		} else if lasting(err) {
			return err
		}
		if failures++; at.events > seen || err == io.EOF { // a server that is polled ends each stream well
			failures = 0
		}
	}
	return nil
}

const maxResume = 8 // attempts in a row that bring nothing

// pause is how long to wait before a stream is asked for again: what the server says, and longer where it was to no avail.
func pause(retry time.Duration, failures int) time.Duration {
	const most = 30 * time.Second
	if failures == 0 {
		return retry
	}
	wait := min(max(retry, 100*time.Millisecond)<<min(failures, 10), most)
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

// lasting reports whether an error will not go away by itself.
func lasting(err error) bool {
	var answered *transport.HTTPError
	return errors.Is(err, ErrSessionLost) || errors.As(err, &answered) && answered.Status < 500 && answered.Status != http.StatusTooManyRequests
}

// get asks for a stream of the session.
func (c *carrier) get(ctx context.Context, last string, revision mcp.Revision) (*http.Response, error) {
	r, err := c.request(ctx, http.MethodGet, &transport.Outbound{Revision: revision})
	if err != nil {
		return nil, err
	}
	if last != "" {
		r.Header[mcp.HeaderLastEventID] = []string{last}
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, c.failed(ctx, err)
	}
	if err := c.check(&transport.Outbound{}, r, resp); err != nil {
		resp.Body.Close()
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header) != "text/event-stream" {
		defer resp.Body.Close()
		return nil, transport.NewHTTPError(resp)
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
	for failures := 0; ; {
		seen := at.events
		resp, err := c.get(c.life, at.last, c.caller.Speaks())
		ready()
		if err == nil {
			failures = 0
			_, err = c.read(at, resp, func(frame []byte) bool {
				c.tap.Show(transport.Received, frame, resp.Header)
				c.caller.Receive(frame)
				return false
			})
			resp.Body.Close()
		}
		var answered *transport.HTTPError
		switch {
		case c.life.Err() != nil || errors.Is(err, ErrSessionLost):
			return
		case errors.As(err, &answered) && answered.Status == http.StatusMethodNotAllowed:
			return // the server has no such stream
		case lasting(err) && at.last != "":
			at.last = "" // the server does not know the event any more
		case lasting(err):
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
