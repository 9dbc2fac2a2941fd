package hub

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/hub/doctor"
	"github.com/dowel-mcp/dowel/transport"
)

// maxTail bounds the lines of stderr that are kept, and maxLine their bytes.
const (
	maxTail = 500
	maxLine = 4 << 10
)

// tail keeps the last lines that a server wrote to stderr, and tells of each.
type tail struct {
	upstream *Upstream

	mu    sync.Mutex
	lines []string
	part  []byte         // of the line that has not ended
	since int            // how many of the lines are of the present attempt
	stray *doctor.Strays // what came on stdout that is no message, in the present attempt
}

// begin begins an attempt.
func (t *tail) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.stray = 0, new(doctor.Strays)
}

// attempt returns what has been written in the present attempt: to stderr, and to stdout what is no message.
func (t *tail) attempt() (stderr, stray []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stray != nil {
		stray = t.stray.Lines()
	}
	return slices.Clone(t.lines[len(t.lines)-t.since:]), stray
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
	line := d.mask(strings.ToValidUTF8(strings.TrimRight(string(t.part), "\r"), "\uFFFD"))
	t.part = t.part[:0]
	if len(t.lines) == maxTail {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, line)
	t.since = min(t.since+1, maxTail)
	t.mu.Unlock()
	t.upstream.hub.bus.publish(Event{Upstream: t.upstream.name, Kind: Wrote, Line: line})
}

// Stderr returns the last lines that the server wrote to stderr, over all its restarts: at most 500.
func (u *Upstream) Stderr() []string {
	u.log.mu.Lock()
	defer u.log.mu.Unlock()
	return slices.Clone(u.log.lines)
}
