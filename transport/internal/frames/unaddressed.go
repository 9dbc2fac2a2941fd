package frames

import (
	"math/bits"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
)

// UnaddressedCounter counts the unaddressed frames of a connection: malformed frames,
// and messages that belong to no request. It also limits their log messages, so that a peer that
// sends nothing else cannot fill the log. It is safe for concurrent use.
type UnaddressedCounter struct{ total atomic.Int64 }

// Add counts a frame. log reports whether the caller should log it: true for the first 16 frames,
// and from then on whenever the count is a power of two.
func (c *UnaddressedCounter) Add() (total int64, log bool) {
	const alwaysLogged = 16
	total = c.total.Add(1)
	return total, total <= alwaysLogged || bits.OnesCount64(uint64(total)) == 1
}

// Total returns the number of frames that were counted.
func (c *UnaddressedCounter) Total() int64 { return c.total.Load() }

// Unaddressed returns the number of unaddressed frames that a transport has received, and 0 if
// the transport does not count them because each request has an HTTP response of its own.
func Unaddressed(t any) int64 {
	if counting, ok := t.(interface{ UnaddressedFrames() int64 }); ok {
		return counting.UnaddressedFrames()
	}
	return 0
}

// ConnTransport is a transport over a [transport.Conn], as package overconn returns it. A type that
// embeds it keeps the optional methods.
type ConnTransport interface {
	mcp.Transport
	mcp.Notifier
	UnaddressedFrames() int64
}
