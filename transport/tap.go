package transport

import "time"

// Frame is what a tap sees: the bytes as they pass, in the order in which they pass.
type Frame struct {
	Time time.Time
	Kind FrameKind
	// Data is the raw frame, or line. It must not be kept or changed.
	Data []byte
	// Header holds the fields sent along, over HTTP, with secrets masked.
	Header map[string][]string
}

// FrameKind says where a frame was going.
type FrameKind uint8

const (
	Sent     FrameKind = iota // by the side that holds the tap
	Received                  // by the side that holds the tap
	Stray                     // received, and no message: rubbish on a server's stdout, for one
)

func (k FrameKind) String() string { return [...]string{"sent", "received", "stray"}[k] }

// Tap sees every frame of a connection in both directions, handshake and probe included. It may be called concurrently
// and must be quick: the connection waits.
type Tap func(Frame)
