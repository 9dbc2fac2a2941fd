package transport

import (
	"math/bits"
	"sync/atomic"
)

// strays counts what cannot be addressed to anybody on a connection. A peer that sends nothing else must not fill the log:
// the first few are logged, and then ever fewer.
type strays struct{ n atomic.Int64 }

// note counts one more and reports whether it is to be logged.
func (s *strays) note() (count int64, log bool) {
	const few = 16
	count = s.n.Add(1)
	return count, count <= few || bits.OnesCount64(uint64(count)) == 1
}

// Strays returns how many frames a transport over a shared channel has received that were no messages, or messages for
// nobody; 0 for a transport that does not count them.
func Strays(t any) int64 {
	if c, ok := t.(interface{ Strays() int64 }); ok {
		return c.Strays()
	}
	return 0
}
