package eventstream

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// buffer holds encoded events that wait to be written. Idle streams have none.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// pendingBuffer returns the buffer to which events are appended.
func (w *Writer) pendingBuffer() *buffer {
	if w.pending == nil {
		w.pending = buffers.Get().(*buffer)
	}
	return w.pending
}

func (w *Writer) appendPending(text string) {
	b := w.pendingBuffer()
	b.bytes = append(b.bytes, text...)
}

func (b *buffer) recycle() {
	const maxRecycled = 64 << 10
	if cap(b.bytes) <= maxRecycled {
		b.bytes = b.bytes[:0]
		buffers.Put(b)
	}
}

// flushOnce writes the pending events and then data. data is nil or the data of the last pending
// event, which is not copied into the buffer. Events that arrive meanwhile are written by another
// goroutine, because the caller's own event has been sent.
//
// w.mu is held on entry and exit but not while writing.
func (w *Writer) flushOnce(data []byte) {
	w.flushing = true
	w.flushBatch(data)
	if w.pending != nil {
		go w.flushInBackground()
		return
	}
	w.endFlush()
}

// startFlush makes another goroutine write the pending events, if none does. w.mu is held.
func (w *Writer) startFlush() {
	if !w.flushing {
		w.flushing = true
		go w.flushInBackground()
	}
}

// flushInBackground is flushAll on a goroutine of its own. Close waits for it.
func (w *Writer) flushInBackground() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushAll()
}

// flushAll writes until no event is pending. A dead stream has no pending events. w.mu is as for
// flushOnce.
func (w *Writer) flushAll() {
	w.flushing = true
	for w.pending != nil {
		w.flushBatch(nil)
	}
	w.endFlush()
}

// endFlush wakes the goroutines that wait for the end of a flush. w.mu is held.
func (w *Writer) endFlush() {
	w.flushing = false
	w.changed.Broadcast()
}

// flushBatch writes the pending events and data. w.mu is as for flushOnce.
func (w *Writer) flushBatch(data []byte) {
	batch, first := w.pending, !w.opened
	w.pending, w.opened = nil, true
	w.inFlight = len(batch.bytes) + len(data)
	w.flushStarted = time.Now()
	w.extendDeadline()
	if !w.armed {
		w.armTimer(w.timerPeriod())
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	err := w.writeBatch(first, batch.bytes, data)
	if err == nil { // otherwise a write may still use the buffer
		batch.recycle()
	}
	w.mu.Lock()
	w.inFlight = 0
	w.releaseBytes()
	if err != nil && w.err == nil {
		w.markDead(fmt.Errorf("the event stream failed: %w", err))
	}
}

// writeBatch writes to the response. Except for endWithoutFlush, nothing else does.
func (w *Writer) writeBatch(first bool, batch, data []byte) error {
	if first {
		_ = w.control.SetWriteDeadline(time.Time{}) // clears the server's deadline; some responses have none
		writeHeader(w.rw)
	}
	err := w.writeInPieces(batch)
	if err == nil && data != nil {
		w.noteProgress()
		if err = w.writeInPieces(data); err == nil {
			w.noteProgress()
			_, err = w.rw.Write(eventEnd)
		}
	}
	if err != nil {
		return err
	}
	return w.control.Flush()
}

// writeInPieces writes long data in pieces, so that a slow client is not cut off while it reads.
func (w *Writer) writeInPieces(b []byte) error {
	const piece = 256 << 10
	for len(b) > piece {
		if _, err := w.rw.Write(b[:piece]); err != nil {
			return err
		}
		b = b[piece:]
		w.noteProgress()
	}
	_, err := w.rw.Write(b)
	return err
}

// noteProgress extends the deadline after the client has taken a part of a flush. w.mu is not held.
func (w *Writer) noteProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extendDeadline()
	w.lease.NoteProgress()
}

// extendDeadline gives the current flush another WriteTimeout, unless Close has bounded it.
// w.mu is held.
func (w *Writer) extendDeadline() {
	if !w.closing {
		w.flushDeadline = time.Now().Add(w.opts.WriteTimeout)
	}
}

var eventEnd = []byte("\n\n")

func writeHeader(rw http.ResponseWriter) {
	h := rw.Header()
	h["Content-Type"] = eventStream
	h["Cache-Control"] = noStore
	h["X-Accel-Buffering"] = noBuffering
	rw.WriteHeader(http.StatusOK)
}

// Values of header fields. All responses share them, and net/http does not change them.
var (
	eventStream = []string{"text/event-stream"}
	noStore     = []string{"no-store, no-transform"}
	noBuffering = []string{"no"} // for nginx
)

// End sends a last event and closes the stream. The caller must then return from the request's
// handler: a small event is sent together with the end of the response. If the event would exceed a
// limit, End sends nothing and returns a [quota.LimitError]. The caller can then end the stream
// with a small event.
func (w *Writer) End(e Event) error {
	if done, err := w.endWithoutFlush(e); done {
		return err
	}
	if err := w.countLast(e); err != nil {
		return err
	}
	if err := w.Send(e); err != nil {
		return err
	}
	return w.Close()
}

// endWithoutFlush writes the last event without a flush; the server sends it when the handler
// returns. It does nothing and returns false if other events are pending or the event is not small.
func (w *Writer) endWithoutFlush(e Event) (done bool, err error) {
	const small = 1 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.encodedSize() > small || w.flushing || w.pending != nil || w.writeError() != nil {
		return false, nil
	}
	w.flushing, w.closing = true, true
	first, batch := !w.opened, w.pendingBuffer()
	w.pending, w.opened = nil, true
	batch.bytes = e.Append(batch.bytes)
	w.mu.Unlock()
	if first {
		writeHeader(w.rw)
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(w.opts.WriteTimeout)) // the timer does not watch this write
	_, err = w.rw.Write(batch.bytes)
	w.mu.Lock()
	batch.recycle()
	w.endFlush()
	if err == nil {
		err = ErrClosed
	}
	if w.err == nil {
		w.markDead(err)
	}
	if err == ErrClosed {
		return true, nil
	}
	return true, err
}
