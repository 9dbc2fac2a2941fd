package doctor

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
)

const (
	keptLines = 10
	lineRunes = 300
)

// Strays keeps the last lines that a server wrote to its stdout and that are no messages. Where a server is started again
// because it died of the question for its era, they are those of the second process. The zero value is ready; it is safe for
// concurrent use.
type Strays struct {
	mu    sync.Mutex
	last  []string
	old   []string   // of the first process, where there is a second
	first jsonrpc.ID // of the first request to the process
	again func()     // is told of a second process; nil for nobody
}

// Tap returns a tap that keeps stray lines and shows every frame to next, which may be nil.
func (s *Strays) Tap(next transport.Tap) transport.Tap {
	return func(f transport.Frame) {
		switch f.Kind {
		case transport.Malformed:
			s.keep(f.Data)
		case transport.Sent:
			s.sent(f.Data)
		}
		if next != nil {
			next(f)
		}
	}
}

// sent looks for the id of the first request: a connection uses each once, so that where it comes again there is another
// process.
func (s *Strays) sent(frame []byte) {
	msg, err := jsonrpc.Parser{}.Parse(frame)
	if err != nil || !msg.IsRequest() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.first.IsZero():
		s.first = msg.ID
	case s.first == msg.ID:
		s.old, s.last = s.last, nil
		if s.again != nil {
			s.again()
		}
	}
}

func (s *Strays) keep(line []byte) {
	const most = 8 << 10 // far more than is shown, so that a secret is not cut before it is masked
	text := clean(string(line[:min(len(line), most)]))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, text)
	s.last = s.last[max(0, len(s.last)-keptLines):]
}

// Lines returns the last lines, at most 10, without control characters and not masked.
func (s *Strays) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.last)
}

// printed is Lines for a start that failed: a second process may have died before what it said was read, and the first one was
// no other program.
func (s *Strays) printed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) == 0 {
		return slices.Clone(s.old)
	}
	return slices.Clone(s.last)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
	cut  bool // the first line is not whole
}

func (t *tail) Write(p []byte) (int, error) {
	const kept = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - kept; over > 0 {
		t.text, t.cut = append(t.text[:0], t.text[over:]...), true
	}
	return len(p), nil
}

func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.cut = nil, false
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.text)
	if t.cut {
		text = withoutFirst(text)
	}
	return lastLines(text)
}

// withoutFirst drops a line of which the beginning is missing: half a secret is not recognised as one.
func withoutFirst(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// lastLines returns the last lines of a text that are not empty.
func lastLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = clean(strings.TrimRight(line, "\r\n")); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-keptLines):]
}

var escapeSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`)

// clean drops what a terminal would obey.
func clean(line string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, escapeSequence.ReplaceAllString(strings.ToValidUTF8(line, "\uFFFD"), ""))
}

func shortened(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
