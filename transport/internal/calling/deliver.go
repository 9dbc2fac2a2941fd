package calling

import (
	"context"

	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// This file exchanges requests and responses with a server in the same process; see package
// direct. All other frames go through the reading loop, because they reach the Inbound.

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

// responseReceiver implements [direct.Receiver]. It takes responses.
type responseReceiver struct{ *caller }

func (r responseReceiver) Receive(frame []byte, s direct.Sending) (direct.Work, bool) {
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	if err != nil || !msg.IsResponse() {
		return nil, false
	}
	frames.ShowDelivered(s, r.opts.Tap, frame)
	r.handleResponse(msg)
	return nil, true
}
