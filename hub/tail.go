package hub

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/transport"
)

// maxHistory bounds the events that are kept of an upstream, and maxLine the bytes of a line of stderr.
const (
	maxHistory = 500
	maxLine    = 4 << 10
)

// history keeps what has happened to an upstream, the lines that it wrote to stderr among it, and tells of each line.
type history struct {
	upstream *Upstream

	mu           sync.Mutex
	events       []Event        // the last maxTail count
	partialLine  []byte         // of the line that has not ended
	attemptLines int            // how many lines were written in the present attempt
	stray        *doctor.Strays // what came on stdout that is no message, in the present attempt
}

// startAttempt begins an attempt.
func (t *history) startAttempt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attemptLines, t.stray = 0, new(doctor.Strays)
}

// attemptOutput returns what has been written in the present attempt: to stderr, and to stdout what is no message.
func (t *history) attemptOutput() (stderr, stray []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stray != nil {
		stray = t.stray.Lines()
	}
	lines := t.stderrLines()
	return lines[len(lines)-min(t.attemptLines, len(lines)):], stray
}

// addEvent adds an event.
func (t *history) addEvent(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appendEvent(e)
}

// appendEvent is keep; t.mu is held.
func (t *history) appendEvent(e Event) {
	if len(t.events) == 2*maxHistory {
		t.events = slices.Clone(t.recentEvents())
	}
	t.events = append(t.events, e)
}

// recentEvents are the events that count; t.mu is held.
func (t *history) recentEvents() []Event { return t.events[max(0, len(t.events)-maxHistory):] }

// stderrLines are those of stderr among them; t.mu is held.
func (t *history) stderrLines() (lines []string) {
	for _, e := range t.recentEvents() {
		if e.Kind == StderrWritten {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// tapStray keeps stray lines of the present attempt, besides what another tap does.
func (t *history) tapStray(next transport.Tap) transport.Tap {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stray.Tap(next)
}

// Write implements [io.Writer]; it never fails.
func (t *history) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			t.addOutput(p, false)
			break
		}
		t.addOutput(p[:end], true)
		p = p[end+1:]
	}
	return n, nil
}

func (t *history) addOutput(p []byte, whole bool) {
	d := t.upstream.Definition()
	t.mu.Lock()
	t.partialLine = append(t.partialLine, p[:min(len(p), max(0, maxLine-len(t.partialLine)))]...)
	if !whole {
		t.mu.Unlock()
		return
	}
	line := d.maskSecrets(strings.ToValidUTF8(strings.TrimRight(string(t.partialLine), "\r"), "\uFFFD"))
	t.partialLine = t.partialLine[:0]
	e := Event{Time: time.Now(), Upstream: t.upstream.name, Kind: StderrWritten, Line: line}
	t.appendEvent(e)
	t.attemptLines++
	t.mu.Unlock()
	t.upstream.hub.bus.publish(e)
}

// History returns what has happened to the upstream last, over all its restarts: states and lines of stderr, at most 500.
func (u *Upstream) History() []Event {
	u.history.mu.Lock()
	defer u.history.mu.Unlock()
	return slices.Clone(u.history.recentEvents())
}

// Stderr returns the lines that the server wrote to stderr among its [Upstream.History].
func (u *Upstream) Stderr() []string {
	u.history.mu.Lock()
	defer u.history.mu.Unlock()
	return u.history.stderrLines()
}
