package transport

import "time"

// Frame is a frame as a [Tap] sees it: the bytes on the wire, in their order.
type Frame struct {
	Time time.Time // when the tap was called
	Kind FrameKind
	// Data is the frame without line breaks or headers around it. The tap must not keep or change
	// it after it has returned.
	Data []byte
	// Header holds the HTTP header fields of the frame, with secrets masked. It is nil on other
	// transports.
	Header map[string][]string
}

// FrameKind is the direction of a frame. The side that holds the tap is the point of view.
type FrameKind uint8

const (
	Sent      FrameKind = iota // the side with the tap has sent the frame
	Received                   // the side with the tap has received the frame
	Malformed                  // received, but not a message: a print to stdout, for example
)

// String returns "sent", "received" or "stray"; the last one means Malformed.
func (k FrameKind) String() string { return [...]string{"sent", "received", "stray"}[k] }

// Tap is called with every frame of a connection, in both directions, including the handshake and
// the probe for the era. It may be called concurrently. The connection waits for it, so it should
// return quickly. A received frame is shown before it has any effect.
type Tap func(Frame)
