package streamable

import (
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
)

// A client may have several standing streams at a time (basic/transports: multiple connections). Each message goes over one
// of them, the newest; the others are spares.

// maxSpares bounds what one session can hold open for nothing.
const maxSpares = 7

type spare struct {
	stream   *eventstream.Writer
	name     string // in the event store: each stream has its own events, and comes back to no other's
	released hold
}

// give makes stream the standing lane's connection, in place of the one that it has. Its name is that of the stream which the
// client comes back to, empty for a new one; l.mu is held.
func (l *lane) give(stream *eventstream.Writer, name string, h hold) {
	if l.stream != nil {
		l.spares = append(l.spares, spare{l.stream, l.name, l.released})
		l.released = nil
	}
	if len(l.spares) > maxSpares {
		l.spares[0].released.letGo()
		l.spares = l.spares[1:]
	}
	l.carry(stream)
	l.released = h
	switch {
	case name != "":
		l.name = name
	case l.numbered:
		l.name = l.session.newName(secondStream)
	}
}

// lose takes stream off the lane, and has a spare in its place; l.mu is held.
func (l *lane) lose(stream *eventstream.Writer) {
	for i, s := range l.spares {
		if s.stream == stream {
			l.spares = append(l.spares[:i], l.spares[i+1:]...)
			s.released.letGo()
			return
		}
	}
	if l.stream != stream {
		return
	}
	l.carry(nil)
	l.left = time.Now()
	l.release()
	if n := len(l.spares); n > 0 {
		s := l.spares[n-1]
		l.spares = l.spares[:n-1]
		l.carry(s.stream)
		l.name, l.released = s.name, s.released
	}
}

// letGo lets all connections go; l.mu is held.
func (l *lane) letGo() {
	l.release()
	for _, s := range l.spares {
		s.released.letGo()
	}
	l.spares = nil
}

// hold keeps the request of a connection from returning until it is let go, once; the lane's mu is held.
type hold interface{ letGo() }

// parked is the hold of a request that does nothing else.
type parked chan struct{}

func (p parked) letGo() { close(p) }
