package streamable

import (
	"context"
	"sync"
	"time"
)

// A standing lane listens to changes of lists from its first GET on, whether or not a client is connected. To listen is a call of
// the handler that goes on, and takes a goroutine: that of a GET while its connection is there, so that a stream which is open
// takes no other; else one of its own. Each such call is a shift. They follow on each other, one at a time:
//
//   - The next one begins before the last one is stopped, so that no change comes between them.
//   - What a handler is told of it may hold back for a moment, to send it with what comes next. So the last shift is heard for a
//     while yet, and the next one has the same while to say what both were told of.
//   - Until then what they say waits, each message once. So nothing comes twice.

// overlap is longer than a handler holds back a change: this server's own do so for 10 to 20 milliseconds.
const overlap = 100 * time.Millisecond

// shift is one subscription of a standing lane.
type shift struct {
	lane  *lane
	ctx   context.Context // of the handler
	stop  context.CancelFunc
	once  sync.Once
	begun func(*shift) // called once the shift is in force, with once

	late *time.Timer // until then; lane.mu is held for it
	here bool        // on the goroutine of a GET whose connection is there, or about to be; lane.mu is held for it
}

// next returns the shift that the caller is to stand; nil where there is no need, since a GET does that whose connection is
// there. begun is that of a GET, and opens its connection once the shift is in force; nil where there is none. It waits for
// shifts that are changing, and until the one that it returns is in force the next call waits for that.
func (l *lane) next(begun func(*shift)) *shift {
	const patience = time.Second // a handler that takes longer may miss the first changes
	l.lock()
	defer l.mu.Unlock()
	for l.changing != nil {
		changed := l.changing
		l.mu.Unlock()
		<-changed
		l.lock()
	}
	if l.over || l.shift != nil && l.shift.here {
		return nil
	}
	l.changing = make(chan struct{})
	s := &shift{lane: l, begun: begun, here: begun != nil}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.late = time.AfterFunc(patience, s.begin)
	return s
}

// stand listens on this goroutine, until the shift is stopped or the handler takes no subscriptions.
func (s *shift) stand() {
	s.lane.session.edge.Listen(s.ctx, s, s.begin)
	s.begin() // whether the handler has listened or not
}

// begin puts the shift in force; when it returns, that is done.
func (s *shift) begin() {
	s.once.Do(func() {
		s.relieve()
		if s.begun != nil {
			s.begun(s)
			s.begun = nil // and what it holds
		}
	})
}

// relieve takes over from the last shift.
func (s *shift) relieve() {
	l := s.lane
	l.lock()
	defer l.mu.Unlock()
	s.late.Stop()
	s.late = nil
	last := l.shift
	l.shift = s
	switch {
	case l.over:
		s.stop()
		l.changed()
	case last == nil:
		l.changed()
	default:
		l.relieved = last
		time.AfterFunc(overlap, func() {
			last.stop()
			time.AfterFunc(overlap, l.settle)
		})
	}
}

// settle sends what was said while two shifts were heard.
func (l *lane) settle() {
	l.lock()
	defer l.mu.Unlock()
	l.relieved = nil
	if l.stream != nil && !l.over {
		l.catchUp()
	}
	l.changed()
}

// changed lets the next shift come; l.mu is held.
func (l *lane) changed() {
	close(l.changing)
	l.changing = nil
}

// Write implements [serving.Writer].
func (s *shift) Write(frame []byte) error {
	l := s.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.relieved != nil && !l.over {
		return l.wait(frame)
	}
	return l.write(frame)
}

// letGo implements [hold]: a goroutine of its own listens from now on, unless another GET is about to. Then the shift is stopped, and
// the request that stands it returns.
func (s *shift) letGo() {
	s.here = false
	if s.lane.over || s.lane.session.server.isClosed() {
		s.stop()
		return
	}
	go s.lane.listenApart()
}

func (l *lane) listenApart() {
	if s := l.next(nil); s != nil {
		s.stand()
	}
}

// stopListening stops the shifts that there are; l.mu is held.
func (l *lane) stopListening() {
	for _, s := range []*shift{l.relieved, l.shift} {
		if s != nil {
			s.stop()
		}
	}
	l.shift = nil
}

// lapse stops the listening of a lane that nobody has come back to.
func (l *lane) lapse() {
	const patience = 2 * time.Minute
	if !l.mu.TryLock() {
		return // something is being sent, or about to be
	}
	defer l.mu.Unlock()
	if l.shift != nil && !l.shift.here && l.stream == nil && time.Since(l.left) > patience {
		l.stopListening()
	}
}
