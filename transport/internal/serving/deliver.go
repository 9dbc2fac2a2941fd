package serving

import (
	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// This file exchanges requests, responses and changes with a client in the same process; see
// package direct. All other frames go through the reading loops.

// requestReceiver implements [direct.Receiver]. It takes requests, but not initialize, which opens
// a session and must not overtake anything.
type requestReceiver struct{ *server }

func (r requestReceiver) Receive(frame []byte, s direct.Sending) (direct.Work, bool) {
	msg, err := jsonrpc.Parse(frame, frames.MethodNames)
	if err != nil || !msg.IsRequest() || msg.Method == mcpwire.MethodInitialize {
		return nil, false
	}
	frames.ShowDelivered(s, r.opts.Tap, frame)
	c := r.newCall(msg, nil)
	if refused := r.admitCall(c); refused != nil {
		r.wg.Go(func() { c.sendResponse(jsonrpc.AppendError(nil, c.id, refused)) }) // which may wait
		return nil, true
	}
	if s.Lend {
		r.wg.Add(1)
		return (*lentCall)(c), true
	}
	r.dispatchCall(c)
	return nil, true
}

// lentCall is a call that is served on the goroutine of the client that made it. It implements
// [direct.Work].
type lentCall call

func (l *lentCall) Run() {
	c := (*call)(l)
	s := c.out.(*server)
	defer s.wg.Done()
	s.serveCall(c)
}

// tryWriter sends frames without waiting.
type tryWriter struct {
	direct *server             // delivers them; nil if its client is not in this process
	wire   transport.TryWriter // writes them if the connection has room; may be nil
}

// newTryWriter returns the tryWriter of out. If mayWrite is false, it only delivers.
func newTryWriter(out Writer, mayWrite bool) (w tryWriter) {
	if s, ok := out.(*server); ok && s.deliverer.IsDirect() {
		w.direct = s
	}
	if mayWrite {
		w.wire, _ = out.(transport.TryWriter)
	}
	return w
}

// isUseless reports whether out can neither deliver nor write without waiting.
func (w tryWriter) isUseless() bool { return w.direct == nil && w.wire == nil }

// try reports whether it has sent the frame.
func (w tryWriter) try(frame []byte) bool {
	return w.direct != nil && w.direct.deliverer.Deliver(frame, false) || w.wire != nil && w.wire.TryWrite(frame)
}
