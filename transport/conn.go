package transport

import (
	"errors"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Conn is a channel that carries frames in both directions. A frame is one JSON-RPC message or
// batch. One goroutine calls Read; any number may call Write. See [TryWriter], [HeaderConn] and
// [HalfOpener] for optional methods.
type Conn interface {
	// Read returns the next frame, which the caller owns. The error is io.EOF if the peer has
	// ended the connection. If it wraps [ErrFrame], only one frame is lost and the caller
	// continues to read.
	Read() ([]byte, error)
	// Write sends frame and takes ownership of it. It may block until there is room, but does not
	// wait for the peer to act.
	Write(frame []byte) error
	// Close ends the connection in both directions. Read and Write return if they are waiting.
	// Close may be called several times.
	Close() error
}

// ErrFrame is wrapped by an error of Read that concerns only one frame, for example a frame over
// the size limit. The connection stays open.
var ErrFrame = errors.New("unusable frame")

// FrameError is the error of Read for a lost frame. If ID is set, the call that the frame belongs
// to fails or is answered at once, instead of waiting.
type FrameError struct {
	Reason string
	// ID is the id of the lost message, guessed from its bytes, or the zero ID if unknown.
	ID jsonrpc.ID
	// Method reports that the message was a request or notification, Response that it was a
	// response. Both are false if the kind is unknown.
	Method, Response bool
}

func (e *FrameError) Error() string { return ErrFrame.Error() + ": " + e.Reason }

// Unwrap returns [ErrFrame].
func (e *FrameError) Unwrap() error { return ErrFrame }

// ErrProbe is wrapped by the error of a dial if the connection ended while the server was asked
// for its era. Most likely an old server exited because it did not know the method: dial again
// with [ClientOptions.Revision] set to a legacy revision.
var ErrProbe = errors.New("the connection ended during the probe")

// ErrUnsent is wrapped by the error of a request that was never sent, because the connection had
// been lost or closed before.
var ErrUnsent = errors.New("not sent")

// DefaultMaxMessage is the largest size in bytes of a message that transports receive, unless an
// option says otherwise.
const DefaultMaxMessage = 16 << 20
