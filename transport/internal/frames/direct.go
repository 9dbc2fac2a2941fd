package frames

import (
	"github.com/dowel-mcp/dowel/internal/direct"
	"github.com/dowel-mcp/dowel/transport"
)

// Deliverer delivers frames to the other end of a connection within one process, and shows them to
// a tap. The zero value delivers nothing: all frames must be written.
type Deliverer struct {
	conn direct.Conn
	show func(frame []byte) // nil without a tap
}

// NewDeliverer returns the deliverer of conn, or the zero value if the ends of conn are not in one
// process.
func NewDeliverer(conn transport.Conn, tap transport.Tap) (d Deliverer) {
	var ok bool
	if d.conn, ok = conn.(direct.Conn); !ok {
		return d
	}
	if tap != nil {
		d.show = func(frame []byte) { Show(tap, transport.Sent, frame, nil) }
	}
	return d
}

// IsDirect reports whether Deliver may deliver frames.
func (d Deliverer) IsDirect() bool { return d.conn != nil }

// SetReceiver sets the receiver of the frames for this end; see [direct.Conn].
func (d Deliverer) SetReceiver(r direct.Receiver) {
	if d.conn != nil {
		d.conn.SetReceiver(r)
	}
}

// Deliver delivers frame, or reports false if the caller must write it; see [direct.Conn].
func (d Deliverer) Deliver(frame []byte, lend bool) bool {
	return d.conn != nil && d.conn.Deliver(frame, direct.Sending{Lend: lend, Show: d.show})
}

// ShowDelivered shows a delivered frame to the taps of both sides, in the order of a wire.
func ShowDelivered(s direct.Sending, tap transport.Tap, frame []byte) {
	if s.Show != nil {
		s.Show(frame)
	}
	Show(tap, transport.Received, frame, nil)
}
