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

// take returns the pending bytes to append to.
func (w *Writer) take() *buffer {
	if w.pending == nil {
		w.pending = buffers.Get().(*buffer)
	}
	return w.pending
}

func (w *Writer) add(text string) {
	b := w.take()
	b.bytes = append(b.bytes, text...)
}

func (b *buffer) giveBack() {
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
	w.write(data)
	if w.pending != nil {
		go w.flushOn()
		return
	}
	w.rest()
}

// sendAside sees to it that somebody else writes what waits.
func (w *Writer) sendAside() {
	if !w.flushing {
		w.flushing = true
		go w.flushOn()
	}
}

// flushOn is flushAll for a goroutine of its own, which Close waits for.
func (w *Writer) flushOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushAll()
}

// flushAll writes all that waits. A stream that dies has nothing that waits.
func (w *Writer) flushAll() {
	w.flushing = true
	for w.pending != nil {
		w.write(nil)
	}
	w.rest()
}

func (w *Writer) rest() {
	w.flushing = false
	w.changed.Broadcast()
}

// write makes one round.
func (w *Writer) write(data []byte) {
	batch, first := w.pending, !w.opened
	w.pending, w.opened = nil, true
	w.began = time.Now()
	w.extend()
	if !w.armed {
		w.arm(w.period())
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	err := w.put(first, batch.bytes, data)
	if err == nil { // else a writer may hold it still
		batch.giveBack()
	}
	w.mu.Lock()
	if err != nil && w.err == nil {
		w.die(fmt.Errorf("the event stream failed: %w", err))
	}
}

// put is the one place where the response is written to.
func (w *Writer) put(first bool, batch, data []byte) error {
	if first {
		_ = w.control.SetWriteDeadline(time.Time{}) // the server's, if it has one and can do without
		writeHeader(w.rw)
	}
	err := w.pieces(batch)
	if err == nil && data != nil {
		w.goesOn()
		if err = w.pieces(data); err == nil {
			w.goesOn()
			_, err = w.rw.Write(eventEnd)
		}
	}
	if err != nil {
		return err
	}
	return w.control.Flush()
}

// pieces writes what is long piece by piece: a slow reader that goes on reading is none that is cut off.
func (w *Writer) pieces(b []byte) error {
	const piece = 256 << 10
	for len(b) > piece {
		if _, err := w.rw.Write(b[:piece]); err != nil {
			return err
		}
		b = b[piece:]
		w.goesOn()
	}
	_, err := w.rw.Write(b)
	return err
}

func (w *Writer) goesOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extend()
}

// extend gives the flush at hand another WriteTimeout, unless Close bounds it.
func (w *Writer) extend() {
	if !w.closing {
		w.bound = time.Now().Add(w.opts.WriteTimeout)
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
	if last, err := w.last(e); last {
		return err
	}
	if err := w.Send(e); err != nil {
		return err
	}
	return w.Close()
}

// last writes the event without a flush, where nothing else waits and the server holds it back until the handler returns.
func (w *Writer) last(e Event) (done bool, err error) {
	const small = 1 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.size() > small || w.flushing || w.pending != nil || w.unusable() != nil {
		return false, nil
	}
	w.flushing, w.closing = true, true
	first, batch := !w.opened, w.take()
	w.pending, w.opened = nil, true
	batch.bytes = e.Append(batch.bytes)
	w.mu.Unlock()
	if first {
		writeHeader(w.rw)
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(w.opts.WriteTimeout)) // nobody watches the end
	_, err = w.rw.Write(batch.bytes)
	w.mu.Lock()
	batch.giveBack()
	w.rest()
	if err == nil {
		err = ErrClosed
	}
	if w.err == nil {
		w.die(err)
	}
	if err == ErrClosed {
		return true, nil
	}
	return true, err
}
