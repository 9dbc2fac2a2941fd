package eventstream

import (
	"errors"
	"time"
)

// One timer keeps an idle stream alive and cuts off one that is stuck, so that a flush sets no deadline: on HTTP/2 that is
// a message to the connection's loop, twice. It is not touched by each event. It fires at least once in every WriteTimeout
// in which there is a flush, finds out what is due and when to look again.

// timerPeriod is how long the timer may not look.
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
			w.armTimer(min(left, w.timerPeriod())) // the flush may be over at once, and the stream idle from then on
			return
		}
		w.cutOffLocked(errNotRead)
		return
	}
	if w.opts.KeepAlive < 0 || w.closing {
		return // the next flush arms it
	}
	if idle := now.Sub(w.flushStarted); idle < w.opts.KeepAlive {
		w.armTimer(min(w.opts.KeepAlive-idle, w.opts.WriteTimeout))
		return
	}
	w.appendPending(keepAlive)
	w.flushAll()
}
