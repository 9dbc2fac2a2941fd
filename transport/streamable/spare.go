package streamable

import (
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
)

// A client may have several standing streams at a time (basic/transports: multiple connections). Each message goes over one
// of them, the newest; the others are spares.

// maxStandby bounds what one session can hold open for nothing.
const maxStandby = 7

type standbyConn struct {
	conn *eventstream.Writer
	name string // in the event store: each stream has its own events, and comes back to no other's
	hold requestHold
}

// addConn makes stream the standing lane's connection, in place of the one that it has. Its name is that of the stream which the
// client comes back to, empty for a new one; l.mu is held.
func (l *legacyStream) addConn(stream *eventstream.Writer, name string, h requestHold) {
	if l.conn != nil {
		l.standby = append(l.standby, standbyConn{l.conn, l.name, l.hold})
		l.hold = nil
	}
	if len(l.standby) > maxStandby {
		l.standby[0].hold.release()
		l.standby = l.standby[1:]
	}
	l.setConn(stream)
	l.hold = h
	switch {
	case name != "":
		l.name = name
	case l.hasEventIDs:
		l.name = l.session.newStreamName(extraStreamMark)
	}
}

// removeConnLocked takes stream off the lane, and has a spare in its place; l.mu is held.
func (l *legacyStream) removeConnLocked(stream *eventstream.Writer) {
	for i, s := range l.standby {
		if s.conn == stream {
			l.standby = append(l.standby[:i], l.standby[i+1:]...)
			s.hold.release()
			return
		}
	}
	if l.conn != stream {
		return
	}
	l.setConn(nil)
	l.disconnectedAt = time.Now()
	l.releaseHold()
	if n := len(l.standby); n > 0 {
		s := l.standby[n-1]
		l.standby = l.standby[:n-1]
		l.setConn(s.conn)
		l.name, l.hold = s.name, s.hold
	}
}

// letGo lets all connections go; l.mu is held.
func (l *legacyStream) releaseConns() {
	l.releaseHold()
	for _, s := range l.standby {
		s.hold.release()
	}
	l.standby = nil
}

// requestHold keeps the request of a connection from returning until it is let go, once; the lane's mu is held.
type requestHold interface{ release() }

// blockedRequest is the hold of a request that does nothing else.
type blockedRequest chan struct{}

func (p blockedRequest) release() { close(p) }
