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

// maxTail bounds the events that are kept of an upstream, and maxLine the bytes of a line of stderr.
const (
	maxTail = 500
	maxLine = 4 << 10
)

// tail keeps what has happened to an upstream, the lines that it wrote to stderr among it, and tells of each line.
type tail struct {
	upstream *Upstream

	mu     sync.Mutex
	events []Event        // the last maxTail count
	part   []byte         // of the line that has not ended
	since  int            // how many lines were written in the present attempt
	stray  *doctor.StdoutTail // what came on stdout that is no message, in the present attempt
}

// begin begins an attempt.
func (t *tail) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.stray = 0, new(doctor.StdoutTail)
}

// attempt returns what has been written in the present attempt: to stderr, and to stdout what is no message.
func (t *tail) attempt() (stderr, stray []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stray != nil {
		stray = t.stray.Lines()
	}
	lines := t.lines()
	return lines[len(lines)-min(t.since, len(lines)):], stray
}

// keep adds an event.
func (t *tail) keep(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(e)
}

// put is keep; t.mu is held.
func (t *tail) put(e Event) {
	if len(t.events) == 2*maxTail {
		t.events = slices.Clone(t.last())
	}
	t.events = append(t.events, e)
}

// last are the events that count; t.mu is held.
func (t *tail) last() []Event { return t.events[max(0, len(t.events)-maxTail):] }

// lines are those of stderr among them; t.mu is held.
func (t *tail) lines() (lines []string) {
	for _, e := range t.last() {
		if e.Kind == Wrote {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// tap keeps stray lines of the present attempt, besides what another tap does.
func (t *tail) tap(next transport.Tap) transport.Tap {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stray.Tap(next)
}

// Write implements [io.Writer]; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			t.add(p, false)
			break
		}
		t.add(p[:end], true)
		p = p[end+1:]
	}
	return n, nil
}

func (t *tail) add(p []byte, whole bool) {
	d := t.upstream.Definition()
	t.mu.Lock()
	t.part = append(t.part, p[:min(len(p), max(0, maxLine-len(t.part)))]...)
	if !whole {
		t.mu.Unlock()
		return
	}
	line := d.maskSecrets(strings.ToValidUTF8(strings.TrimRight(string(t.part), "\r"), "\uFFFD"))
	t.part = t.part[:0]
	e := Event{Time: time.Now(), Upstream: t.upstream.name, Kind: Wrote, Line: line}
	t.put(e)
	t.since++
	t.mu.Unlock()
	t.upstream.hub.bus.publish(e)
}

// History returns what has happened to the upstream last, over all its restarts: states and lines of stderr, at most 500.
func (u *Upstream) History() []Event {
	u.log.mu.Lock()
	defer u.log.mu.Unlock()
	return slices.Clone(u.log.last())
}

// Stderr returns the lines that the server wrote to stderr among its [Upstream.History].
func (u *Upstream) Stderr() []string {
	u.log.mu.Lock()
	defer u.log.mu.Unlock()
	return u.log.lines()
}
