package frames

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/transport"
)

// Show calls tap, unless it is nil, with a frame and the header fields that came or go with it.
// Secrets in the header are masked. A received frame is shown after it has been parsed and before
// it has any effect.
func Show(tap transport.Tap, kind transport.FrameKind, frame []byte, header map[string][]string) {
	if tap != nil {
		tap(transport.Frame{Time: time.Now(), Kind: kind, Data: frame, Header: secretmask.Header(header)})
	}
}

// ShowIn is [Show] for a frame of a request or connection with the context ctx. It passes the frame
// to the sink of the context, too.
func ShowIn(ctx context.Context, tap transport.Tap, kind transport.FrameKind, frame []byte, header map[string][]string) {
	if sink := framesink.Serving(ctx); sink != nil {
		sink.AddFrame(framesink.Direction(kind), frame, header)
	}
	Show(tap, kind, frame, header)
}

// WithSink returns a tap that passes each frame to sink and to tap. Either may be nil.
func WithSink(sink framesink.Sink, tap transport.Tap) transport.Tap {
	if sink == nil {
		return tap
	}
	return func(f transport.Frame) {
		sink.AddFrame(framesink.Direction(f.Kind), f.Data, f.Header)
		if tap != nil {
			tap(f)
		}
	}
}

// tappedConn is a Conn that shows each frame before it is written.
type tappedConn struct {
	transport.Conn
	tap transport.Tap
}

// TapSent returns a Conn that shows every frame to tap that is written to conn. It returns conn
// itself if tap is nil.
func TapSent(conn transport.Conn, tap transport.Tap) transport.Conn {
	if tap == nil {
		return conn
	}
	return &tappedConn{conn, tap}
}

// TryWrite implements [transport.TryWriter]. It reports false if the Conn does not implement it.
func (t *tappedConn) TryWrite(frame []byte) bool {
	w, ok := t.Conn.(transport.TryWriter)
	if !ok || !w.TryWrite(frame) {
		return false
	}
	Show(t.tap, transport.Sent, frame, nil)
	return true
}

// HalfOpen implements [transport.HalfOpener]. It reports false if the Conn does not implement it.
func (t *tappedConn) HalfOpen() bool {
	h, ok := t.Conn.(transport.HalfOpener)
	return ok && h.HalfOpen()
}

func (t *tappedConn) Write(frame []byte) error {
	Show(t.tap, transport.Sent, frame, nil)
	return t.Conn.Write(frame)
}
