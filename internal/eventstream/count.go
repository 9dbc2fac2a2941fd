package eventstream

import "github.com/dowel-mcp/dowel/internal/quota"

// countBytes counts n more bytes that wait for the client. If they would exceed a limit, it counts
// nothing and returns a [quota.LimitError]. w.mu is held.
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

// releaseBytes counts the bytes again after some were written or dropped. w.mu is held.
func (w *Writer) releaseBytes() {
	if w.lease != nil {
		_ = w.lease.Resize(int64(max(0, w.waitingBytes()-quota.Uncounted))) // a smaller number does not fail
	}
}

// waitingBytes returns the number of bytes that the client has not taken yet. w.mu is held.
func (w *Writer) waitingBytes() int {
	n := w.blocked + w.inFlight
	if w.pending != nil {
		n += len(w.pending.bytes)
	}
	return n
}

// countLast counts the last event of the stream before it is sent. w.mu is not held.
func (w *Writer) countLast(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeError(); err != nil {
		return err
	}
	return w.countBytes(e.encodedSize())
}
