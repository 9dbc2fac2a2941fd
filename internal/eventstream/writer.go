package eventstream

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// WriterOptions configure a [Writer]. The zero value is ready to use.
type WriterOptions struct {
	// KeepAlive is the idle time after which a comment is sent, 15 s if it is 0. A negative value
	// disables it.
	KeepAlive time.Duration
	// MaxQueue bounds the bytes that wait for the socket, 1 MiB if it is 0. One event may always
	// wait, whatever its size.
	MaxQueue int
	// WriteTimeout bounds how long the client may take to read a flush, or 256 KiB of it; 30 s if
	// it is 0.
	WriteTimeout time.Duration
	// Account is where the bytes that wait are counted, except the first [quota.Uncounted]. If a
	// limit is exceeded, the stream is cut off.
	Account quota.Account
	// KeepAtLimit keeps the stream at a limit: Send returns a [quota.LimitError] for an event of
	// more than 1 KiB. Smaller ones are sent, so that they can tell the client of the refusal.
	KeepAtLimit bool
}

func (o *WriterOptions) setDefaults() {
	if o.KeepAlive == 0 {
		o.KeepAlive = 15 * time.Second
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 1 << 20
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
}

// Errors of a [Writer] after the end of its stream.
var (
	ErrClosed = errors.New("the event stream is closed")
	ErrCutOff = errors.New("the event stream was cut off")
)

// Writer owns a response that is an event stream. All its methods are safe for concurrent use.
//
// An idle stream holds no goroutine and no buffer. A sender that finds no write in progress writes
// the pending events itself; others append theirs to them. If the client reads slowly, up to
// MaxQueue bytes wait. Then [Writer.Send] waits for room, and [Writer.TrySend] fails without losing
// anything. A client that reads almost nothing for WriteTimeout is cut off. The response then ends
// abnormally, perhaps within an event, so that the client notices.
type Writer struct {
	rw      http.ResponseWriter // used only by the flushing goroutine
	control *http.ResponseController
	opts    WriterOptions

	mu            sync.Mutex
	changed       sync.Cond
	pending       *buffer   // encoded events that wait; nil if none do, unless a flush is in progress
	blocked       int       // bytes of events that wait for room in pending
	inFlight      int       // bytes of the flush in progress
	flushing      bool      // a goroutine is writing to rw
	flushStarted  time.Time // when the last flush began
	flushDeadline time.Time // when the flush in progress is cut off
	opened        bool      // the header has been written, or the flush in progress writes it
	closing       bool
	err           error         // why the stream has ended; nil before
	done          chan struct{} // made by the first Done
	onDeath       func()
	timer         *time.Timer
	armed         bool
	lease         *quota.Lease // counts the bytes that wait; nil until there are more than quota.Uncounted
}

// NewWriter returns a writer that turns w into an event stream. It sends nothing until the stream
// is opened, so until then the caller can still send another answer.
func NewWriter(w http.ResponseWriter, o WriterOptions) *Writer {
	o.setDefaults()
	s := &Writer{rw: w, control: http.NewResponseController(w), opts: o}
	s.changed.L = &s.mu
	return s
}

// Open sends the header together with a comment, because some proxies hold back a header without
// data. It clears the server's write deadline. It does nothing if the stream is open.
func (w *Writer) Open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeError(); err != nil || w.opened || w.flushing {
		return err
	}
	w.appendPending(opening)
	w.flushOnce(nil)
	return w.err
}

const (
	opening   = ": open\n\n"
	keepAlive = ": keep-alive\n\n"
)

// Send sends an event after the events sent before, and opens the stream if needed. It may wait for
// the client to read. When it returns nil, the event has been written or another goroutine will
// write it.
func (w *Writer) Send(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.waitForRoom(e.encodedSize()); err != nil {
		return err
	}
	const large = 16 << 10 // a copy of more costs more than another write
	b := w.pendingBuffer()
	if !w.flushing && len(e.Data) >= large && lineBreak(e.Data) < 0 {
		b.bytes = append(e.appendHead(b.bytes), dataField...)
		w.flushOnce(e.Data)
		return w.err
	}
	b.bytes = e.Append(b.bytes)
	return w.flushPending()
}

// SendEncoded is [Writer.Send] for an event encoded by [Encode]. The caller keeps event.
func (w *Writer) SendEncoded(event []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.waitForRoom(len(event)); err != nil {
		return err
	}
	b := w.pendingBuffer()
	b.bytes = append(b.bytes, event...)
	return w.flushPending()
}

// flushPending writes the pending events, unless another goroutine does.
func (w *Writer) flushPending() error {
	if w.flushing {
		return nil
	}
	w.flushOnce(nil)
	return w.err
}

// TrySend sends an event without waiting; another goroutine writes it. It reports false if the
// queue is full or the stream has ended.
func (w *Writer) TrySend(e Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := e.encodedSize(); w.writeError() != nil || w.isFull(n) || w.countBytes(n) != nil {
		return false
	}
	b := w.pendingBuffer()
	b.bytes = e.Append(b.bytes)
	w.startFlush()
	return true
}

// TrySendEncoded is [Writer.TrySend] for an event encoded by [Encode]. The caller keeps event.
func (w *Writer) TrySendEncoded(event []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(event); w.writeError() != nil || w.isFull(n) || w.countBytes(n) != nil {
		return false
	}
	b := w.pendingBuffer()
	b.bytes = append(b.bytes, event...)
	w.startFlush()
	return true
}

// Done returns a channel that is closed when the stream has failed, was cut off or was closed.
func (w *Writer) Done() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = make(chan struct{})
		if w.err != nil {
			close(w.done)
		}
	}
	return w.done
}

// OnDeath sets a function that is called once, on its own goroutine, if the stream ends otherwise
// than by Close. If it has ended already, f is called now. This costs less than waiting for Done.
func (w *Writer) OnDeath(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && !w.closing {
		go f()
		return
	}
	w.onDeath = f
}

// Err returns why the stream has ended, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// CutOff ends the stream at once and drops pending events. It does not wait for a write in
// progress, so Close must still be called.
func (w *Writer) CutOff(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutOffLocked(reason)
}

// Close writes the pending events, for at most WriteTimeout, and ends the stream. When it returns,
// nothing uses the ResponseWriter any more. The error is the reason if the stream failed before;
// further calls return the same. A stream that was not opened sends nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closing {
		w.closing = true
		w.flushDeadline = time.Now().Add(w.opts.WriteTimeout)
		w.changed.Broadcast()
		w.armTimer(w.opts.WriteTimeout)
	}
	for w.flushing {
		w.changed.Wait()
	}
	if w.err == nil {
		w.markDead(ErrClosed)
	}
	if errors.Is(w.err, ErrClosed) {
		return nil
	}
	return w.err
}

// writeError returns the error for writing to a stream that has ended or is closing.
func (w *Writer) writeError() error {
	if w.err == nil && w.closing {
		return ErrClosed
	}
	return w.err
}

func (w *Writer) isFull(n int) bool {
	return w.pending != nil && len(w.pending.bytes)+n > w.opts.MaxQueue
}

// alwaysSent is the size in bytes of an event that KeepAtLimit does not refuse.
const alwaysSent = 1 << 10

// waitForRoom waits until n bytes fit into the queue. If they exceed a limit, it returns an error,
// and the stream is cut off unless the options keep it.
func (w *Writer) waitForRoom(n int) error {
	if err := w.writeError(); err != nil {
		return err
	}
	if err := w.countBytes(n); err != nil && (n > alwaysSent || !w.opts.KeepAtLimit) {
		if w.opts.KeepAtLimit {
			return err
		}
		w.cutOffLocked(err)
		return w.err
	}
	w.blocked += n
	for w.writeError() == nil && w.isFull(n) {
		w.changed.Wait()
	}
	w.blocked -= n
	return w.writeError()
}

func (w *Writer) markDead(err error) {
	w.err = err
	w.pending = nil
	w.releaseBytes()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.done != nil {
		close(w.done)
	}
	w.changed.Broadcast()
	if w.onDeath != nil && !w.closing {
		go w.onDeath()
	}
}

// cutOffLocked ends the stream, also during a write. w.mu is held.
func (w *Writer) cutOffLocked(reason error) {
	if w.err != nil {
		return
	}
	w.markDead(fmt.Errorf("%w: %w", ErrCutOff, reason))
	_ = w.control.SetWriteDeadline(time.Unix(1, 0)) // a response without deadlines cannot be cut off
}
