package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// A subscriptionRunner runs one subscription of a session stream: a call of the handler that lasts
// until it is cancelled and writes changes to the stream.
//
// A subscription occupies a goroutine for its whole life. While a GET is open, the goroutine of
// that GET runs it, so that an open stream costs no second one. Otherwise the stream starts a
// goroutine. So the subscription changes its runner when a GET begins or ends. A handover between
// two runners must neither lose a change nor send one twice:
//
//   - The new subscription is active before the old one is cancelled, so no change falls between
//     them.
//   - A handler may hold back a change for a moment, to coalesce it with others. So both run for
//     handoverOverlap, and then the new one has the same time to send a change that both have seen.
//   - Until then the frames of both are queued, equal ones once, so none arrives twice.
type subscriptionRunner struct {
	stream *sessionStream
	ctx    context.Context // passed to the handler
	cancel context.CancelFunc

	activate sync.Once
	onActive func(*subscriptionRunner) // called once, when the subscription is active; may be nil

	startTimeout *time.Timer // activates the runner if the handler is slow; nil once active; guarded by stream.mu
	isLate       bool        // startTimeout has activated it, and the handler has not acknowledged yet; guarded by stream.mu
	acknowledged bool        // by the handler; guarded by stream.mu
	isOver       bool        // the handler has ended the subscription; guarded by stream.mu
	onGET        bool        // runs on the goroutine of an open GET; guarded by stream.mu
}

// handoverOverlap must exceed the time for which a handler may hold back a change to coalesce it.
// Package server holds changes back for 10 to 20 ms.
const handoverOverlap = 100 * time.Millisecond

// startRunner returns the runner that the caller must run, or nil if an open GET already runs the
// subscription. It first waits for a handover in progress; the returned runner begins another one.
// A GET passes onActive, to open its connection only after the subscription is active.
func (st *sessionStream) startRunner(onActive func(*subscriptionRunner)) *subscriptionRunner {
	const maxStart = time.Second // a handler that takes longer is late: see noteAcknowledged
	st.lockOrCutOff()
	defer st.mu.Unlock()
	for st.handover != nil {
		ended := st.handover
		st.mu.Unlock()
		<-ended
		st.lockOrCutOff()
	}
	isAtOther := onActive == nil && st.isReleased && st.conn == nil
	if st.ended || isAtOther || st.runner != nil && st.runner.onGET {
		return nil
	}
	st.handover = make(chan struct{})
	r := &subscriptionRunner{stream: st, onActive: onActive, onGET: onActive != nil}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.startTimeout = time.AfterFunc(maxStart, r.markLate)
	return r
}

// markLate marks the runner active although the handler has not acknowledged the subscription.
func (r *subscriptionRunner) markLate() {
	r.stream.lockOrCutOff()
	r.isLate = r.startTimeout != nil
	r.stream.mu.Unlock()
	r.markActive()
}

// runSubscription runs the subscription on this goroutine. It returns when the runner is cancelled,
// or at once if the handler has no subscriptions.
func (r *subscriptionRunner) runSubscription() {
	st := r.stream
	st.session.edge.Listen(r.ctx, r, r.noteAcknowledged)
	r.markActive() // if the handler has no subscriptions
	st.lockOrCutOff()
	defer st.mu.Unlock()
	if r.isOver = r.acknowledged; !r.acknowledged {
		r.isLate = false
	}
}

// isComplete reports whether the subscription has reported each change since it is active. So it is
// for a handler that takes no subscriptions. stream.mu is held.
func (r *subscriptionRunner) isComplete() bool {
	return r.ctx.Err() == nil && !r.isLate && !r.isOver
}

// noteAcknowledged keeps which lists the handler reports changes of, and marks the runner active.
// If it already is, the client may have missed changes, so each list counts as changed.
func (r *subscriptionRunner) noteAcknowledged(params json.RawMessage) {
	st := r.stream
	st.lockOrCutOff()
	if st.session.server.replicas != nil {
		st.lists = bytes.Clone(params)
	}
	r.acknowledged = true
	st.mu.Unlock()
	r.markActive()
	st.lockOrCutOff()
	wasLate := r.isLate
	r.isLate = false
	st.mu.Unlock()
	if wasLate {
		for _, frame := range listChanges(params) {
			_ = r.Write(frame) // a change is queued without a connection
		}
	}
}

// markActive replaces the runner before and calls onActive. Both have happened when it returns.
func (r *subscriptionRunner) markActive() {
	r.activate.Do(func() {
		r.replaceRunner()
		if r.onActive != nil {
			r.onActive(r)
			r.onActive = nil // frees the memory that it refers to
		}
	})
}

// replaceRunner makes r the stream's runner. If there was another one, the handover ends later, by
// timers.
func (r *subscriptionRunner) replaceRunner() {
	st := r.stream
	st.lockOrCutOff()
	defer st.mu.Unlock()
	r.startTimeout.Stop()
	r.startTimeout = nil
	replaced := st.runner
	st.runner = r
	switch {
	case st.ended:
		r.cancel()
		st.endHandover()
	case replaced == nil:
		st.isFresh, st.wasTaken, st.isReleased = true, st.wasTaken || st.isReleased, false
		st.endHandover()
	default:
		st.replacedRunner = replaced
		r.isLate = r.isLate || replaced.isLate || replaced.isOver
		time.AfterFunc(handoverOverlap, func() {
			replaced.cancel()
			time.AfterFunc(handoverOverlap, st.finishHandover)
		})
	}
}

// finishHandover sends or stores the frames that were queued while two runners were active.
func (st *sessionStream) finishHandover() {
	st.lockOrCutOff()
	defer st.mu.Unlock()
	st.replacedRunner = nil
	switch {
	case st.ended:
	case st.conn != nil:
		st.sendQueued()
	default:
		st.storeQueued()
	}
	st.endHandover()
}

// endHandover lets the next runner start. st.mu is held.
func (st *sessionStream) endHandover() {
	close(st.handover)
	st.handover = nil
}

// Write implements [serving.Writer] for the changes that the handler reports.
func (r *subscriptionRunner) Write(frame []byte) error {
	st := r.stream
	if method, _ := rawjson.String(rawjson.Lookup(frame, "method")); method == mcp.NotificationResourcesChanged {
		st.session.retryRefused()
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.replacedRunner != nil && !st.ended {
		return st.queueFrame(frame)
	}
	return st.writeLocked(frame)
}

// release implements [requestHold] for the GET that runs the subscription. A goroutine of the
// stream takes over, unless another GET does. When the handover cancels r, the GET returns.
func (r *subscriptionRunner) release() {
	r.onGET = false
	if r.stream.ended || r.stream.session.server.isClosed() {
		r.cancel()
		return
	}
	go r.stream.runInBackground()
}

func (st *sessionStream) runInBackground() {
	if r := st.startRunner(nil); r != nil {
		r.runSubscription()
	}
}

// stopRunners cancels the subscription. st.mu is held.
func (st *sessionStream) stopRunners() {
	for _, r := range []*subscriptionRunner{st.replacedRunner, st.runner} {
		if r != nil {
			r.cancel()
		}
	}
	st.runner = nil
}

// stopUnusedRunner cancels the subscription if no client has been connected for two minutes.
func (st *sessionStream) stopUnusedRunner() {
	const maxDisconnected = 2 * time.Minute
	if !st.mu.TryLock() {
		return // a frame is being sent, so a client is connected
	}
	defer st.mu.Unlock()
	if st.runner != nil && !st.runner.onGET && st.conn == nil && time.Since(st.disconnectedAt) > maxDisconnected {
		st.stopRunners()
	}
}
