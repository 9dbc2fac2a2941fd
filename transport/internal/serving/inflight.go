package serving

import (
	"context"
	"fmt"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// inFlight holds the calls in flight of one client: of a connection, or of a session. The zero value takes calls once most
// is set.
type inFlight struct {
	most int
	busy sync.WaitGroup // until their handlers have returned

	mu    sync.Mutex
	one   *call                // mostly there is one at a time
	calls map[jsonrpc.ID]*call // beside it
	over  error                // why no call begins any more
}

// enter is where calls begin; done is where they end.
func (f *inFlight) enter(ctx context.Context, c *call) *mcp.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over != nil {
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", f.over)
	}
	if f.find(c.id) != nil {
		c.edge.logger.Warn("a request has the id of another one in flight and is not served", "id", c.id.String(), "method", c.req.Method)
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "id %s is in use by a request in flight", c.id)
	}
	if f.count() >= f.most {
		return mcp.Errorf(jsonrpc.CodeInternal, "more than %d requests are in flight: wait for responses and try again", f.most)
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx) // end cancels what is in flight
	switch {
	case f.one == nil:
		f.one = c
	case f.calls == nil:
		f.calls = map[jsonrpc.ID]*call{c.id: c}
	default:
		f.calls[c.id] = c
	}
	f.busy.Add(1)
	return nil
}

// find returns the call with the id, or nil; f.mu is held, as it is for count and each.
func (f *inFlight) find(id jsonrpc.ID) *call {
	if f.one != nil && f.one.id == id {
		return f.one
	}
	return f.calls[id]
}

func (f *inFlight) count() int {
	if f.one != nil {
		return len(f.calls) + 1
	}
	return len(f.calls)
}

func (f *inFlight) each(do func(*call)) {
	if f.one != nil {
		do(f.one)
	}
	for _, c := range f.calls {
		do(c)
	}
}

// leave gives the call's id free: from its response on the client may use it again.
func (f *inFlight) leave(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.one == c {
		f.one = nil
	} else {
		delete(f.calls, c.id)
	}
	c.left = true
}

func (f *inFlight) done(c *call) {
	if !c.left {
		f.leave(c)
	}
	c.cancel(nil)
	f.busy.Done()
}

// cancelled ends the call that the params of notifications/cancelled name: its context with the client's reason, and its
// right to an answer. The error is for params that name none, and not for one that is over.
func (f *inFlight) cancelled(params []byte) error {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, "requestId"))
	if err != nil {
		return fmt.Errorf("%s without a requestId: %w", mcp.NotificationCancelled, err)
	}
	f.mu.Lock()
	c := f.find(id)
	f.mu.Unlock()
	if c == nil {
		return nil
	}
	if _, initialize := c.era.(opening); initialize {
		return nil // it cannot be cancelled
	}
	reason, _ := rawjson.String(rawjson.Lookup(params, "reason"))
	c.cancel(&frames.CancelledError{Reason: reason})
	return nil
}

// endSubscriptions cancels what would never end by itself.
func (f *inFlight) endSubscriptions(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.each(func(c *call) {
		if c.req.Method == mcp.MethodListen {
			c.cancel(cause)
		}
	})
}

// close takes no further calls, for the reason given.
func (f *inFlight) close(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = why
}

// end cancels all calls and takes no further ones.
func (f *inFlight) end(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = cause
	f.each(func(c *call) { c.cancel(cause) })
}

// abandon answers the calls in flight with an error, whatever becomes of them, and returns how many that were.
func (f *inFlight) abandon(refused *mcp.Error) (n int) {
	var waiting []*call
	f.mu.Lock()
	f.each(func(c *call) { waiting = append(waiting, c) })
	f.mu.Unlock()
	for _, c := range waiting {
		if c.ctx.Err() == nil && c.close() {
			c.send(jsonrpc.AppendError(nil, c.id, refused))
			n++
		}
	}
	return n
}
