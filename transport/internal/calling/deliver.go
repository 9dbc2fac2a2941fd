package calling

import (
	"context"
	"slices"

	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// This file exchanges requests, responses and changes with a server in the same process; see
// package direct. All other frames go through the reading loop, because they reach the Inbound.

// deliverRequest delivers a request, or reports false if it must be written. ctx is nil for a
// request of the handshake, which is always written.
//
// The server's handler runs on this goroutine if the caller waits for nothing but the response:
// neither for the end of ctx nor for notifications.
func (c *caller) deliverRequest(ctx context.Context, x *exchange, frame []byte) bool {
	if ctx == nil {
		return false
	}
	isReturned := false
	defer func() {
		if !isReturned { // the handler has ended this goroutine, or a tap has panicked
			c.releaseExchange(x)
		}
	}()
	ok := c.deliverer.Deliver(frame, x.notify == nil && ctx.Done() == nil)
	isReturned = true
	return ok
}

// receiver implements [direct.Receiver]. It takes responses, and the changes of subscriptions that
// may be called on any goroutine.
type receiver struct{ *caller }

func (r receiver) Receive(frame []byte, s direct.Sending) (direct.Work, bool) {
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	switch {
	case err != nil:
		return nil, false
	case msg.IsResponse():
		frames.ShowDelivered(s, r.opts.Tap, frame)
		r.handleResponse(msg)
		return nil, true
	case msg.IsNotification():
		return nil, r.receiveChange(msg, frame, s)
	}
	return nil, false
}

// receiveChange passes a change to its subscriptions, or reports false and has done nothing.
func (r receiver) receiveChange(msg jsonrpc.Message, frame []byte, s direct.Sending) bool {
	e := r.currentEra()
	if e == nil || !isChange(msg.Method) {
		return false
	}
	n := mcp.Notification{Method: msg.Method, Params: msg.Params}
	r.delivery.Lock()
	defer r.delivery.Unlock()
	r.deliveredTo = e.findReceivers(n, r.deliveredTo[:0])
	isQueued := func(x *exchange) bool { return !x.inline }
	if len(r.deliveredTo) == 0 || slices.ContainsFunc(r.deliveredTo, isQueued) {
		return false
	}
	frames.ShowDelivered(s, r.opts.Tap, frame)
	for _, x := range r.deliveredTo {
		x.queue.push(n)
	}
	return true
}

func isChange(method string) bool {
	switch method {
	case mcp.NotificationToolsChanged, mcp.NotificationPromptsChanged, mcp.NotificationResourcesChanged, mcp.NotificationResourceUpdated:
		return true
	}
	return false
}
