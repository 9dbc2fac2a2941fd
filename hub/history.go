package hub

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

const (
	// Limits of a history: maxHistory events, and maxLine bytes of a line of stderr.
	maxHistory = 500
	maxLine    = 4 << 10
)

// history keeps the last events of an upstream, with the lines that the server writes to stderr,
// and publishes each line as an event.
type history struct {
	upstream *Upstream

	mu           sync.Mutex
	events       []Event            // at most 2*maxHistory; the last maxHistory count
	partialLine  []byte             // a line without its end, at most maxLine bytes
	attemptLines int                // number of lines of stderr since the attempt began
	stdout       *doctor.StdoutTail // lines since the attempt began that are not messages
}

// startAttempt begins the output of a new attempt.
func (h *history) startAttempt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attemptLines, h.stdout = 0, new(doctor.StdoutTail)
}

// attemptOutput returns the output of the current attempt: the lines of stderr, and the lines of
// stdout that are not messages.
func (h *history) attemptOutput() (stderr, stdout []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stdout != nil {
		stdout = h.stdout.Lines()
	}
	lines := h.stderrLines()
	return lines[len(lines)-min(h.attemptLines, len(lines)):], stdout
}

// addEvent adds an event.
func (h *history) addEvent(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appendEvent(e)
}

// appendEvent adds an event. h.mu is held. It copies only when the slice has doubled, so that
// adding is cheap.
func (h *history) appendEvent(e Event) {
	if len(h.events) == 2*maxHistory {
		h.events = slices.Clone(h.recentEvents())
	}
	h.events = append(h.events, e)
}

// recentEvents returns the last maxHistory events. h.mu is held.
func (h *history) recentEvents() []Event { return h.events[max(0, len(h.events)-maxHistory):] }

// stderrLines returns the lines of stderr among the recent events. h.mu is held.
func (h *history) stderrLines() (lines []string) {
	for _, e := range h.recentEvents() {
		if e.Kind == StderrWritten {
			lines = append(lines, e.Line)
		}
	}
	return lines
}

// tapStdout returns a tap that collects the lines of stdout that are not messages, and calls next.
func (h *history) tapStdout(next transport.Tap) transport.Tap {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stdout.Tap(next)
}

// Write takes the server's stderr. It implements [io.Writer] and never fails.
func (h *history) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			h.addOutput(p, false)
			break
		}
		h.addOutput(p[:end], true)
		p = p[end+1:]
	}
	return n, nil
}

// addOutput adds a part of a line, and ends the line if endsLine is true.
func (h *history) addOutput(p []byte, endsLine bool) {
	d := h.upstream.Definition()
	h.mu.Lock()
	h.partialLine = append(h.partialLine, p[:min(len(p), max(0, maxLine-len(h.partialLine)))]...)
	if !endsLine {
		h.mu.Unlock()
		return
	}
	line := d.maskText(strings.ToValidUTF8(strings.TrimRight(string(h.partialLine), "\r"), "\uFFFD"))
	h.partialLine = h.partialLine[:0]
	e := Event{Time: time.Now(), Upstream: h.upstream.name, Kind: StderrWritten, Line: line}
	h.appendEvent(e)
	h.attemptLines++
	h.mu.Unlock()
	h.upstream.hub.bus.publish(e)
}

// addNote adds a line of dowel's own, in brackets, to the output of the server.
func (h *history) addNote(text string) {
	e := Event{Time: time.Now(), Upstream: h.upstream.name, Kind: StderrWritten, Line: "[" + text + "]"}
	h.mu.Lock()
	h.appendEvent(e)
	h.attemptLines++
	h.mu.Unlock()
	h.upstream.hub.bus.publish(e)
}

// History returns the last 500 events of the upstream over all its restarts: changes of its state
// and lines of stderr.
func (u *Upstream) History() []Event {
	u.history.mu.Lock()
	defer u.history.mu.Unlock()
	return slices.Clone(u.history.recentEvents())
}

// diagnoseError explains the error of the current attempt.
func (u *Upstream) diagnoseError(err error) *doctor.Diagnosis {
	d := doctor.Explain(err, u.doctorServer())
	return &d
}

// doctorServer describes the server to package doctor, with the output of the current attempt.
func (u *Upstream) doctorServer() doctor.Server {
	d := u.Definition()
	stderr, stdout := u.history.attemptOutput()
	target := d.Target
	if shared, ok := target.(*sharedserver.Target); ok && shared.IsOwn() {
		target = shared.Inner()
	}
	return doctor.Server{Name: d.Name, Target: target, Options: d.Options, Mask: d.Mask, Stderr: stderr, StrayStdout: stdout}
}

// failureStatus returns the status after an error: [NeedsLogin], [NeedsAuthorization] if the server
// refused the credentials or the lack of them, or else [Failed].
func failureStatus(err error) Status {
	if login, ok := errors.AsType[*httpwire.RefusalError](err); ok && login.NeedsLogin {
		return NeedsLogin
	} else if ok && login.NoServer {
		return NeedsAuthorization
	}
	var refused *streamable.HTTPError
	if errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) {
		return NeedsAuthorization
	}
	return Failed
}
