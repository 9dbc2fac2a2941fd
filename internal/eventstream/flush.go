package eventstream

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// buffer holds what waits, and only while it waits: an idle stream has none.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// pendingBuffer returns the pending bytes to append to.
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
	const most = 64 << 10
	if cap(b.bytes) <= most {
		b.bytes = b.bytes[:0]
		buffers.Put(b)
	}
}

// flushOnce writes what waits, and behind it the data of an event that is not copied. What comes meanwhile is not for the
// caller to write: its own event has gone out. w.mu is held, but not while writing; so it is for the functions below.
func (w *Writer) flushOnce(data []byte) {
	w.flushing = true
	w.flushBatch(data)
	if w.pending != nil {
		go w.flushInBackground()
		return
	}
	w.endFlush()
}

// startFlush sees to it that somebody else writes what waits.
func (w *Writer) startFlush() {
	if !w.flushing {
		w.flushing = true
		go w.flushInBackground()
	}
}

// flushInBackground is flushAll for a goroutine of its own, which Close waits for.
func (w *Writer) flushInBackground() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushAll()
}

// flushAll writes all that waits. A stream that dies has nothing that waits.
func (w *Writer) flushAll() {
	w.flushing = true
	for w.pending != nil {
		w.flushBatch(nil)
	}
	w.endFlush()
}

func (w *Writer) endFlush() {
	w.flushing = false
	w.changed.Broadcast()
}

// flushBatch makes one round.
func (w *Writer) flushBatch(data []byte) {
	batch, first := w.pending, !w.opened
	w.pending, w.opened = nil, true
	w.flushStarted = time.Now()
	w.extendDeadline()
	if !w.armed {
		w.armTimer(w.timerPeriod())
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	err := w.writeBatch(first, batch.bytes, data)
	if err == nil { // else a writer may hold it still
		batch.recycle()
	}
	w.mu.Lock()
	if err != nil && w.err == nil {
		w.markDead(fmt.Errorf("the event stream failed: %w", err))
	}
}

// writeBatch is the one place where the response is written to.
func (w *Writer) writeBatch(first bool, batch, data []byte) error {
	if first {
		_ = w.control.SetWriteDeadline(time.Time{}) // the server's, if it has one and can do without
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

// writeInPieces writes what is long piece by piece: a slow reader that goes on reading is none that is cut off.
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

func (w *Writer) noteProgress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extendDeadline()
}

// extendDeadline gives the flush at hand another WriteTimeout, unless Close bounds it.
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

// Shared by all responses, which do not change them.
var (
	eventStream = []string{"text/event-stream"}
	noStore     = []string{"no-store, no-transform"}
	noBuffering = []string{"no"} // nginx
)

// End sends a last event and closes the stream. The caller must return from the request's handler next: a small event goes
// out with the end of the response, in one piece.
func (w *Writer) End(e Event) error {
	if last, err := w.endWithoutFlush(e); last {
		return err
	}
	if err := w.Send(e); err != nil {
		return err
	}
	return w.Close()
}

// endWithoutFlush writes the event without a flush, where nothing else waits and the server holds it back until the handler returns.
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
	_ = w.control.SetWriteDeadline(time.Now().Add(w.opts.WriteTimeout)) // nobody watches the end
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
