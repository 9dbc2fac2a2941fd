package eventstream

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// WriterOptions configure a [Writer]. The zero value is ready.
type WriterOptions struct {
	// KeepAlive is the idle time after which a comment is sent, 0: 15 seconds; negative: never.
	KeepAlive time.Duration
	// MaxQueue bounds the bytes that wait for the socket, 0: 1 MiB. One event may always wait, whatever its size.
	MaxQueue int
	// WriteTimeout bounds how long the reader may take for what is written, or for each 256 KiB of it; 0: 30 seconds.
	WriteTimeout time.Duration
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

// Errors of a [Writer] whose stream is dead.
var (
	ErrClosed = errors.New("the event stream is closed")
	ErrCutOff = errors.New("the event stream was cut off")
)

// Writer owns a response that is an event stream. All its methods are safe for concurrent use.
//
// A stream that is not written to holds no goroutine and no buffer. What is sent goes out at once: who finds nobody writing
// writes what waits, the others leave theirs with it. The policy for a reader that is slow: up to MaxQueue bytes wait; a
// sender that can wait ([Writer.Send]) then waits for room, one that cannot ([Writer.TrySend]) is told so and loses nothing.
// A stream of which next to nothing is taken for WriteTimeout is cut off, in the middle of an event perhaps, and not ended as
// it should: the reader can tell.
type Writer struct {
	rw      http.ResponseWriter // of the one who flushes
	control *http.ResponseController
	opts    WriterOptions

	mu       sync.Mutex
	changed  sync.Cond
	pending  *buffer   // encoded events that wait; nil for none, unless somebody flushes
	flushing bool      // somebody is using rw
	flushStarted    time.Time // when that began, the last time
	flushDeadline    time.Time // when a flush that goes on is cut off
	opened   bool      // the header has been written, or will be by who is flushing
	closing  bool
	err      error         // why the stream is dead
	done     chan struct{} // nil until somebody waits
	onDeath  func()
	timer    *time.Timer
	armed    bool
}

// NewWriter returns a writer of the stream that w becomes. It sends nothing yet: until the stream is opened, the caller
// may answer otherwise.
func NewWriter(w http.ResponseWriter, o WriterOptions) *Writer {
	o.setDefaults()
	s := &Writer{rw: w, control: http.NewResponseController(w), opts: o}
	s.changed.L = &s.mu
	return s
}

// Open sends the header, and a comment with it, since some proxies hold a header back until there is data. It clears the
// server's write deadline. On a stream that is open it does nothing.
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

// Send sends an event, behind those that were sent before, and opens the stream if need be. It may wait for the reader,
// until the stream is cut off. It returns without an error when the event has been written or waits for others to write it.
func (w *Writer) Send(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.waitForRoom(e.encodedSize()); err != nil {
		return err
	}
	const large = 16 << 10 // from here on a copy costs more than another write
	b := w.pendingBuffer()
	if !w.flushing && len(e.Data) >= large && lineBreak(e.Data) < 0 {
		b.bytes = append(e.appendHead(b.bytes), dataField...)
		w.flushOnce(e.Data)
		return w.err
	}
	b.bytes = e.Append(b.bytes)
	return w.flushPending()
}

// SendEncoded is [Writer.Send] of what [Encode] returned, which stays the caller's.
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

// flushPending sees to it that somebody writes what was added.
func (w *Writer) flushPending() error {
	if w.flushing {
		return nil
	}
	w.flushOnce(nil)
	return w.err
}

// TrySend sends an event if that needs no waiting: what it adds is written by others. It reports false where too much waits,
// or the stream is dead.
func (w *Writer) TrySend(e Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writeError() != nil || w.isFull(e.encodedSize()) {
		return false
	}
	b := w.pendingBuffer()
	b.bytes = e.Append(b.bytes)
	w.startFlush()
	return true
}

// TrySendEncoded is [Writer.TrySend] of what [Encode] returned, which stays the caller's.
func (w *Writer) TrySendEncoded(event []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writeError() != nil || w.isFull(len(event)) {
		return false
	}
	b := w.pendingBuffer()
	b.bytes = append(b.bytes, event...)
	w.startFlush()
	return true
}

// Done is closed once the stream is dead: a write failed, or it was cut off or closed.
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

// OnDeath has f called once, on a goroutine of its own, if the stream dies of anything but Close, which may have been before.
// It takes less than to wait for Done does.
func (w *Writer) OnDeath(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil && !w.closing {
		go f()
		return
	}
	w.onDeath = f
}

// Err says why the stream is dead; nil while it is not.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// CutOff ends the stream at once, whatever waits, with the reason. It does not wait, and is not instead of Close.
func (w *Writer) CutOff(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cutOffLocked(reason)
}

// Close writes what waits, for at most WriteTimeout, and ends the stream. When it returns nobody uses the ResponseWriter any
// more. The error is that of a stream which died before; closing again returns the same. A stream that was never opened is
// not opened.
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

// writeError is the error of what is sent to a stream that is dead or ending.
func (w *Writer) writeError() error {
	if w.err == nil && w.closing {
		return ErrClosed
	}
	return w.err
}

func (w *Writer) isFull(n int) bool {
	return w.pending != nil && len(w.pending.bytes)+n > w.opts.MaxQueue
}

// waitForRoom waits until n bytes may wait.
func (w *Writer) waitForRoom(n int) error {
	for w.writeError() == nil && w.isFull(n) {
		w.changed.Wait()
	}
	return w.writeError()
}

func (w *Writer) markDead(err error) {
	w.err = err
	w.pending = nil
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

// cutOffLocked ends the stream under the hands of who is writing.
func (w *Writer) cutOffLocked(reason error) {
	if w.err != nil {
		return
	}
	w.markDead(fmt.Errorf("%w: %w", ErrCutOff, reason))
	_ = w.control.SetWriteDeadline(time.Unix(1, 0)) // what has no deadlines cannot be cut off
}
