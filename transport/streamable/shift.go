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

// handoverOverlap is longer than a handler holds back a change: this server's own do so for 10 to 20 milliseconds.
const handoverOverlap = 100 * time.Millisecond

// subscriptionRunner is one subscription of a standing lane.
type subscriptionRunner struct {
	stream   *legacyStream
	ctx      context.Context // of the handler
	cancel   context.CancelFunc
	activate sync.Once
	onActive func(*subscriptionRunner) // called once the shift is in force, with once

	startTimeout *time.Timer // until then; lane.mu is held for it
	onGET        bool        // on the goroutine of a GET whose connection is there, or about to be; lane.mu is held for it
}

// startRunner returns the shift that the caller is to stand; nil where there is no need, since a GET does that whose connection is
// there. begun is that of a GET, and opens its connection once the shift is in force; nil where there is none. It waits for
// shifts that are changing, and until the one that it returns is in force the next call waits for that.
func (l *legacyStream) startRunner(begun func(*subscriptionRunner)) *subscriptionRunner {
	const patience = time.Second // a handler that takes longer may miss the first changes
	l.lockOrCutOff()
	defer l.mu.Unlock()
	for l.handover != nil {
		changed := l.handover
		l.mu.Unlock()
		<-changed
		l.lockOrCutOff()
	}
	if l.ended || l.runner != nil && l.runner.onGET {
		return nil
	}
	l.handover = make(chan struct{})
	s := &subscriptionRunner{stream: l, onActive: begun, onGET: begun != nil}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.startTimeout = time.AfterFunc(patience, s.markActive)
	return s
}

// runSubscription listens on this goroutine, until the shift is stopped or the handler takes no subscriptions.
func (s *subscriptionRunner) runSubscription() {
	s.stream.session.edge.Listen(s.ctx, s, s.markActive)
	s.markActive() // whether the handler has listened or not
}

// markActive puts the shift in force; when it returns, that is done.
func (s *subscriptionRunner) markActive() {
	s.activate.Do(func() {
		s.takeOver()
		if s.onActive != nil {
			s.onActive(s)
			s.onActive = nil // and what it holds
		}
	})
}

// takeOver takes over from the last shift.
func (s *subscriptionRunner) takeOver() {
	l := s.stream
	l.lockOrCutOff()
	defer l.mu.Unlock()
	s.startTimeout.Stop()
	s.startTimeout = nil
	last := l.runner
	l.runner = s
	switch {
	case l.ended:
		s.cancel()
		l.endHandover()
	case last == nil:
		l.endHandover()
	default:
		l.replacedRunner = last
		time.AfterFunc(handoverOverlap, func() {
			last.cancel()
			time.AfterFunc(handoverOverlap, l.finishHandover)
		})
	}
}

// finishHandover sends what was said while two shifts were heard.
func (l *legacyStream) finishHandover() {
	l.lockOrCutOff()
	defer l.mu.Unlock()
	l.replacedRunner = nil
	if l.conn != nil && !l.ended {
		l.sendQueued()
	}
	l.endHandover()
}

// endHandover lets the next shift come; l.mu is held.
func (l *legacyStream) endHandover() {
	close(l.handover)
	l.handover = nil
}

// Write implements [serving.Writer].
func (s *subscriptionRunner) Write(frame []byte) error {
	l := s.stream
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replacedRunner != nil && !l.ended {
		return l.queueFrame(frame)
	}
	return l.writeLocked(frame)
}

// release implements [hold]: a goroutine of its own listens from now on, unless another GET is about to. Then the shift is stopped, and
// the request that stands it returns.
func (s *subscriptionRunner) release() {
	s.onGET = false
	if s.stream.ended || s.stream.session.server.isClosed() {
		s.cancel()
		return
	}
	go s.stream.runInBackground()
}

func (l *legacyStream) runInBackground() {
	if s := l.startRunner(nil); s != nil {
		s.runSubscription()
	}
}

// stopRunners stops the shifts that there are; l.mu is held.
func (l *legacyStream) stopRunners() {
	for _, s := range []*subscriptionRunner{l.replacedRunner, l.runner} {
		if s != nil {
			s.cancel()
		}
	}
	l.runner = nil
}

// stopUnusedRunner stops the listening of a lane that nobody has come back to.
func (l *legacyStream) stopUnusedRunner() {
	const patience = 2 * time.Minute
	if !l.mu.TryLock() {
		return // something is being sent, or about to be
	}
	defer l.mu.Unlock()
	if l.runner != nil && !l.runner.onGET && l.conn == nil && time.Since(l.disconnectedAt) > patience {
		l.stopRunners()
	}
}
