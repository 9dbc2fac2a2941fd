package serving

import (
	"context"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// callTable holds the calls in flight of one connection or session. Set limit before use.
type callTable struct {
	limit   int
	running sync.WaitGroup // counts calls until their handlers have returned

	mu        sync.Mutex
	single    *call                // most clients make one call at a time, which then needs no map
	others    map[jsonrpc.ID]*call // further calls in flight
	closedErr error                // why calls are refused; nil while they are admitted
}

// addCall enters c and sets its context, or refuses it: if the table is closed, the id is in use
// or the limit is reached. Every entered call must be passed to finishCall.
func (f *callTable) addCall(ctx context.Context, c *call) *mcp.Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closedErr != nil {
		return mcp.Errorf(jsonrpc.CodeInternal, "%s", f.closedErr)
	}
	if f.findCall(c.id) != nil {
		c.edge.logger.Warn("a request has the id of another one in flight and is not served", "id", c.id.String(), "method", c.req.Method)
		return mcp.Errorf(jsonrpc.CodeInvalidRequest, "id %s is in use by a request in flight", c.id)
	}
	if f.countCalls() >= f.limit {
		return mcp.Errorf(jsonrpc.CodeInternal, "more than %d requests are in flight: wait for responses and try again", f.limit)
	}
	c.lazy.Init(ctx)
	c.ctx = &c.lazy
	switch {
	case f.single == nil:
		f.single = c
	case f.others == nil:
		f.others = map[jsonrpc.ID]*call{c.id: c}
	default:
		f.others[c.id] = c
	}
	f.running.Add(1)
	return nil
}

// findCall returns the call with the id, or nil. The caller holds f.mu, here and for countCalls
// and forEachCall.
func (f *callTable) findCall(id jsonrpc.ID) *call {
	if f.single != nil && f.single.id == id {
		return f.single
	}
	return f.others[id]
}

func (f *callTable) countCalls() int {
	if f.single != nil {
		return len(f.others) + 1
	}
	return len(f.others)
}

func (f *callTable) forEachCall(do func(*call)) {
	if f.single != nil {
		do(f.single)
	}
	for _, c := range f.others {
		do(c)
	}
}

// releaseID removes the call, so that the client may use its id again as soon as the response is
// sent.
func (f *callTable) releaseID(c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.single == c {
		f.single = nil
	} else {
		delete(f.others, c.id)
	}
	c.idReleased = true
}

func (f *callTable) finishCall(c *call) {
	if !c.idReleased {
		f.releaseID(c)
	}
	c.lazy.Release()
	f.running.Done()
}

// handleCancelled handles the params of notifications/cancelled: it cancels the context of the
// call that they name, and the call is not answered. A call that has ended is ignored. The error
// is for params without a request id.
func (f *callTable) handleCancelled(params []byte) error {
	id, err := jsonrpc.ParseID(rawjson.Lookup(params, "requestId"))
	if err != nil {
		return fmt.Errorf("%s without a requestId: %w", mcpwire.NotificationCancelled, err)
	}
	f.mu.Lock()
	c := f.findCall(id)
	f.mu.Unlock()
	if c == nil {
		return nil
	}
	if _, initialize := c.era.(initializing); initialize {
		return nil // initialize cannot be cancelled
	}
	reason, _ := rawjson.String(rawjson.Lookup(params, "reason"))
	c.edge.logger.Debug("the client has cancelled a request", "method", c.req.Method, "reason", reason)
	c.lazy.Cancel(&frames.CancelledError{Reason: reason})
	return nil
}

// cancelSubscriptions cancels the subscriptions, which would not end by themselves.
func (f *callTable) cancelSubscriptions(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forEachCall(func(c *call) {
		if c.req.Method == mcp.MethodListen {
			c.lazy.Cancel(cause)
		}
	})
}

// stopAdmitting refuses further calls with the message of why.
func (f *callTable) stopAdmitting(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closedErr = why
}

// cancelAll cancels all calls and refuses further ones.
func (f *callTable) cancelAll(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closedErr = cause
	f.forEachCall(func(c *call) { c.lazy.Cancel(cause) })
}

// abandonCalls answers the calls in flight with an error although their handlers still run, and
// returns the number of them.
func (f *callTable) abandonCalls(refused *mcp.Error) (n int) {
	var waiting []*call
	f.mu.Lock()
	f.forEachCall(func(c *call) { waiting = append(waiting, c) })
	f.mu.Unlock()
	for _, c := range waiting {
		if c.ctx.Err() == nil && c.closePeer() {
			c.sendResponse(jsonrpc.AppendError(nil, c.id, refused))
			n++
		}
	}
	return n
}
