package stdio

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	defaultRing = 64 << 10
	backlog     = 256 << 10   // bytes that a slow Command.Stderr may fall behind
	flushBound  = time.Second // how long Close waits for a slow Command.Stderr
)

// stderrLog keeps the end of what a child writes to stderr and copies it on. Its Write never blocks.
type stderrLog struct {
	mu   sync.Mutex
	size int
	ring []byte
	next int // where the next byte goes once the ring is full

	copyTo  io.Writer // nil: nowhere
	queue   []byte
	omitted int
	ended   bool
	more    chan struct{} // cap 1: there is something in the queue, or ended
	copied  chan struct{} // closed when the copying goroutine is gone
}

func newStderrLog(size int, copyTo io.Writer) *stderrLog {
	if size == 0 {
		size = defaultRing
	}
	l := &stderrLog{size: max(size, 0), copyTo: copyTo, more: make(chan struct{}, 1), copied: make(chan struct{})}
	if copyTo == nil {
		close(l.copied)
	} else {
		go l.copyOn()
	}
	return l
}

func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(p)
	if l.copyTo != nil {
		fits := min(len(p), backlog-len(l.queue)) // 0 after a gap, until it has been told
		l.queue = append(l.queue, p[:fits]...)
		l.omitted += len(p) - fits
		l.wake()
	}
	return len(p), nil
}

func (l *stderrLog) keep(p []byte) {
	p = p[max(0, len(p)-l.size):]
	if room := l.size - len(l.ring); room > 0 {
		n := min(room, len(p))
		l.ring = append(l.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(l.ring[l.next:], p)
		l.next = (l.next + n) % l.size
		p = p[n:]
	}
}

func (l *stderrLog) wake() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *stderrLog) copyOn() {
	defer close(l.copied)
	var batch []byte
	for range l.more {
		var ended bool
		batch, ended = l.take(batch[:0])
		if len(batch) > 0 {
			if _, err := l.copyTo.Write(batch); err != nil {
				l.stopCopying()
				return
			}
		}
		if ended {
			return
		}
	}
}

// take empties the queue into batch and tells of what did not fit into it.
func (l *stderrLog) take(batch []byte) ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch = append(batch, l.queue...)
	l.queue = l.queue[:0]
	if l.omitted > 0 {
		batch = fmt.Appendf(batch, "\n[%d bytes of stderr left out: they came faster than they could be copied]\n", l.omitted)
		l.omitted = 0
	}
	return batch, l.ended
}

func (l *stderrLog) stopCopying() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copyTo, l.queue, l.omitted = nil, nil, 0
}

// close waits for what is still to be copied. A writer that stays stuck beyond the bound is left behind.
func (l *stderrLog) close() {
	l.mu.Lock()
	l.ended = true
	l.wake()
	l.mu.Unlock()
	within(l.copied, flushBound)
}

func (l *stderrLog) bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(bytes.Clone(l.ring[l.next:]), l.ring[:l.next]...)
}

func (l *stderrLog) tail(lines int) string {
	if lines <= 0 {
		return ""
	}
	b := bytes.TrimRight(l.bytes(), "\r\n")
	from := len(b)
	for ; lines > 0 && from >= 0; lines-- {
		from = bytes.LastIndexByte(b[:from], '\n')
	}
	return string(b[from+1:])
}

// within reports whether done was closed before d had passed.
func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}
