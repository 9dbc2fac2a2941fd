package doctor

import (
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/stacktrace"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/transport"
)

const (
	keptLines = 10
	lineRunes = 300
)

// StdoutTail keeps the last 10 lines that a server wrote to its stdout outside messages. If the
// server is started again because it ended when it was asked for its era, StdoutTail starts over.
// The zero value is ready to use. It is safe for concurrent use.
type StdoutTail struct {
	mu          sync.Mutex
	lines       []string
	linesBefore []string   // of the first process, if there is a second
	firstID     jsonrpc.ID // of the first request to the process
	onRestart   func()     // called when a second process is detected; may be nil
}

// Tap returns a tap that collects the lines and passes every frame on to next. next may be nil.
func (s *StdoutTail) Tap(next transport.Tap) transport.Tap {
	return func(f transport.Frame) {
		switch f.Kind {
		case transport.Malformed:
			s.keepLine(f.Data)
		case transport.Sent:
			s.noteSent(f.Data)
		}
		if next != nil {
			next(f)
		}
	}
}

// noteSent watches for a repeated first request id. A connection uses each id once, so a repeated
// one means a second process.
func (s *StdoutTail) noteSent(frame []byte) {
	msg, err := jsonrpc.Parse(frame, nil)
	if err != nil || !msg.IsRequest() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.firstID.IsZero():
		s.firstID = msg.ID
	case s.firstID == msg.ID:
		s.linesBefore, s.lines = s.lines, nil
		if s.onRestart != nil {
			s.onRestart()
		}
	}
}

// keepLine adds a line, and drops the oldest one if there are too many.
func (s *StdoutTail) keepLine(line []byte) {
	const most = 8 << 10 // much longer than shown, so that masking sees the whole secret
	text := stripControls(string(line[:min(len(line), most)]))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text)
	s.lines = s.lines[max(0, len(s.lines)-keptLines):]
}

// Lines returns the last lines, at most 10. Control characters are removed, secrets are not masked.
func (s *StdoutTail) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// failedLines returns the lines that explain a failed start. A second process may die before its
// output is read, so the lines of the first process are used if the second has none: both run the
// same program.
func (s *StdoutTail) failedLines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == 0 {
		return slices.Clone(s.linesBefore)
	}
	return slices.Clone(s.lines)
}

// stderrTail keeps the last 16 KiB of the text that is written to it.
type stderrTail struct {
	mu    sync.Mutex
	text  []byte
	isCut bool // the first line has lost its beginning
}

func (t *stderrTail) Write(p []byte) (int, error) {
	const kept = 16 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - kept; over > 0 {
		t.text, t.isCut = append(t.text[:0], t.text[over:]...), true
	}
	return len(p), nil
}

func (t *stderrTail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text, t.isCut = nil, false
}

func (t *stderrTail) lastLines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.text)
	if t.isCut {
		text = dropFirstLine(text)
	}
	return lastLines(text)
}

// dropFirstLine drops a line that has lost its beginning: the masker does not recognise half a
// secret.
func dropFirstLine(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// lastLines returns the last non-empty lines of a text, at most keptLines, without the frames of
// stack traces.
func lastLines(text string) []string {
	var lines []string
	for line := range strings.Lines(stacktrace.Condense(text)) {
		if line = stripControls(strings.TrimRight(line, "\r\n")); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-keptLines):]
}

// stripControls removes control characters and escape sequences from a line, which a
// terminal would execute.
func stripControls(line string) string {
	return strings.ReplaceAll(process.StripControls(line), "\n", "")
}

// shortenText cuts text to at most the given number of characters.
func shortenText(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
