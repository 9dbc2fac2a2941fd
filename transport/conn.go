package transport

import (
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Conn carries frames both ways; a frame is one JSON-RPC message or batch. One goroutine reads, any number write.
type Conn interface {
	// Read returns the next frame, which is the caller's from then on. io.EOF says that the peer has ended the
	// connection; an error that wraps [ErrFrame] concerns one frame only, and reading goes on.
	Read() ([]byte, error)
	// Write sends a frame, which is the Conn's from then on. It does not wait for the peer to act on it, but may wait
	// for room.
	Write(frame []byte) error
	// Close ends the connection in both directions, and Read and Write that wait.
	Close() error
}

// ErrFrame is wrapped by errors of Read about one frame, such as one over the limit. The frame is lost, not the
// connection.
var ErrFrame = errors.New("unusable frame")

// FrameError is the error for a frame that was lost.
type FrameError struct {
	Reason string
	// ID is that of the lost message, where it could be guessed from what was seen of it.
	ID jsonrpc.ID
	// Method and Response say what the message began like: a request or notification, or a response. Neither is known
	// where both are false.
	Method, Response bool
}

func (e *FrameError) Error() string { return ErrFrame.Error() + ": " + e.Reason }

// Unwrap makes errors.Is find [ErrFrame].
func (e *FrameError) Unwrap() error { return ErrFrame }

// ErrProbe is wrapped by the error of a dial when the connection ended while the server was asked for its era: an old
// server that died of a method it does not know, most likely. Connect again with a legacy revision pinned.
var ErrProbe = errors.New("the connection ended during the probe")

// ErrUnsent is wrapped by the error of a request that was not sent, since the connection was lost before.
var ErrUnsent = errors.New("not sent")

// TooLarge is the error for a frame of size bytes, over the limit, of which no more was kept than its ends. What it was is
// guessed from these.
func TooLarge(size int64, limit int, head, tail []byte) *FrameError {
	begins := firstMember().FindSubmatch(head)
	return &FrameError{
		Reason: fmt.Sprintf("a message of %d bytes is over the limit of %d", size, limit),
		ID:     jsonrpc.GuessID(head, tail),
		Method: begins != nil && begins[1] != nil, Response: begins != nil && begins[2] != nil,
	}
}

// firstMember is the first member of a message that tells its kind.
var firstMember = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*\{\s*(?:"(?:jsonrpc|id)"\s*:\s*(?:"[^"\\]*"|-?[0-9]+)\s*,\s*)*(?:("(?:method|params)")|("(?:result|error)"))\s*:`)
})

// Limits that hold where options do not say otherwise.
const (
	DefaultMaxMessage    = 16 << 20 // bytes of one frame on a stream
	DefaultMaxConcurrent = 1024     // requests that one connection may have in flight
)
