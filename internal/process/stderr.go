package process

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	defaultRing = 64 << 10    // bytes of stderr that are kept
	maxBacklog  = 256 << 10   // limit of bytes that wait for a slow Command.Stderr
	flushBound  = time.Second // limit for copying the queue when the child has ended
)

// stderrLog keeps the end of a child's stderr and copies all of it to a writer. Its Write never
// blocks.
type stderrLog struct {
	mu   sync.Mutex
	size int
	ring []byte
	next int // index of the next byte when the ring is full

	copyTo  io.Writer // nil for no copy
	queue   []byte
	omitted int
	ended   bool
	more    chan struct{} // capacity 1; signals that queue or ended has changed
	copied  chan struct{} // closed when the copying goroutine has ended
}

func newStderrLog(size int, copyTo io.Writer) *stderrLog {
	l := &stderrLog{size: size, copyTo: copyTo, more: make(chan struct{}, 1), copied: make(chan struct{})}
	if copyTo == nil {
		close(l.copied)
	} else {
		go l.copyToWriter()
	}
	return l
}

func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keepLast(p)
	if l.copyTo != nil {
		fits := min(len(p), maxBacklog-len(l.queue)) // 0 after a gap, until the gap has been reported
		l.queue = append(l.queue, p[:fits]...)
		l.omitted += len(p) - fits
		l.wakeCopier()
	}
	return len(p), nil
}

func (l *stderrLog) keepLast(p []byte) {
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

func (l *stderrLog) wakeCopier() {
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *stderrLog) copyToWriter() {
	defer close(l.copied)
	var batch []byte
	for range l.more {
		var ended bool
		batch, ended = l.takeQueue(batch[:0])
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

// takeQueue moves the queue into batch and reports omitted bytes.
func (l *stderrLog) takeQueue(batch []byte) ([]byte, bool) {
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

// awaitCopy waits until the queue has been copied. It gives up on a writer that blocks longer
// than flushBound.
func (l *stderrLog) awaitCopy() {
	l.mu.Lock()
	l.ended = true
	l.wakeCopier()
	l.mu.Unlock()
	waitWithin(l.copied, flushBound)
}

func (l *stderrLog) snapshot() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append(bytes.Clone(l.ring[l.next:]), l.ring[:l.next]...)
}

// lastLines returns the last lines of text.
func lastLines(text string, lines int) string {
	if lines <= 0 {
		return ""
	}
	text = strings.TrimRight(text, "\r\n")
	from := len(text)
	for ; lines > 0 && from >= 0; lines-- {
		from = strings.LastIndexByte(text[:from], '\n')
	}
	return text[from+1:]
}

// waitWithin reports whether done was closed within d.
func waitWithin(done <-chan struct{}, d time.Duration) bool {
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
