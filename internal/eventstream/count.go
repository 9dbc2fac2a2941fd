package eventstream

import "github.com/dowel-mcp/dowel/internal/quota"

// countBytes counts n more bytes that wait. An error says that they may not. w.mu is held, here and
// below.
func (w *Writer) countBytes(n int) error {
	counted := w.waitingBytes() + n - quota.Uncounted
	if counted <= 0 {
		return nil
	}
	if w.lease == nil {
		w.lease = w.opts.Account.NewLease(w)
	}
	return w.lease.Resize(int64(counted))
}

// releaseBytes counts the bytes again after some were written or dropped.
func (w *Writer) releaseBytes() {
	if w.lease != nil {
		_ = w.lease.Resize(int64(max(0, w.waitingBytes()-quota.Uncounted))) // a smaller number does not fail
	}
}

// waitingBytes returns the bytes that the client has not taken yet.
func (w *Writer) waitingBytes() int {
	n := w.blocked + w.inFlight
	if w.pending != nil {
		n += len(w.pending.bytes)
	}
	return n
}

// countLast counts the last event of the stream before it is sent.
func (w *Writer) countLast(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeError(); err != nil {
		return err
	}
	return w.countBytes(e.encodedSize())
}
