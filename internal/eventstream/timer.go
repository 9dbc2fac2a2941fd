package eventstream

import (
	"errors"
	"time"
)

// One timer per stream sends keep-alives and cuts off a client that does not read. A write deadline
// for each flush would cost two messages to the connection's loop on HTTP/2. Events do not touch
// the timer: it fires at least once in each WriteTimeout with a flush, checks the stream, and sets
// itself again.

// timerPeriod returns the longest time between two checks.
func (w *Writer) timerPeriod() time.Duration {
	if w.opts.KeepAlive < 0 {
		return w.opts.WriteTimeout
	}
	return min(w.opts.KeepAlive, w.opts.WriteTimeout)
}

func (w *Writer) armTimer(d time.Duration) {
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(d, w.checkTimer)
		return
	}
	w.timer.Reset(d)
}

var errNotRead = errors.New("the client does not read it")

func (w *Writer) checkTimer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	if w.err != nil {
		return
	}
	now := time.Now()
	if w.flushing {
		if left := w.flushDeadline.Sub(now); left > 0 {
			w.armTimer(min(left, w.timerPeriod())) // if the flush ends now, the stream is idle from now on
			return
		}
		w.cutOffLocked(errNotRead)
		return
	}
	if w.opts.KeepAlive < 0 || w.closing {
		return // the next flush sets the timer
	}
	if idle := now.Sub(w.flushStarted); idle < w.opts.KeepAlive {
		w.armTimer(min(w.opts.KeepAlive-idle, w.opts.WriteTimeout))
		return
	}
	w.appendPending(keepAlive)
	w.flushAll()
}
