package modelhttp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AnswerError is the error of an answer that is not what was asked for: mostly something else is at the address.
type AnswerError struct{ text string }

func (e *AnswerError) Error() string { return e.text }

// maxWhole bounds an answer that is no stream, in bytes.
const maxWhole = 16 << 20

// begin sees to it that an answer is a stream, and not, say, the page of somebody who wants a login. It goes by the first bytes:
// there are servers whose streams have no type of content, or a wrong one.
func (w *Watch) begin(res *http.Response) {
	r := bufio.NewReader(res.Body)
	_, err := r.Peek(1)
	head, _ := r.Peek(r.Buffered())
	w.answer = &answer{Reader: r, Closer: res.Body}
	switch {
	case err == nil && isStream(head):
	case err != nil && !errors.Is(err, io.EOF):
		w.answer.Reader = failing{err}
	default:
		w.answer.Reader = w.other(r, res.Header.Get("Content-Type"), string(head))
	}
	res.Body = w.answer
}

// isStream reports whether something may be the beginning of a stream of events.
func isStream(head []byte) bool {
	text := strings.TrimLeft(string(head), "\ufeff\r\n\t ")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if strings.HasPrefix(text, field) || strings.HasPrefix(field, text) {
			return true
		}
	}
	return false
}

// other reads an answer that is no stream: a whole one is as good, and an error is in the place of any else.
func (w *Watch) other(r io.Reader, kind, head string) io.Reader {
	if strings.HasPrefix(head, "{") {
		body, err := io.ReadAll(io.LimitReader(r, maxWhole))
		if err != nil {
			return failing{err}
		}
		if events := w.Whole(body); events != nil {
			return bytes.NewReader(events)
		}
		head = string(body)
	}
	if strings.TrimSpace(head) == "" {
		return failing{w.none("nothing, and no stream of "+w.Of, "")}
	}
	what := "something that is no stream of " + w.Of
	if kind, _, err := mime.ParseMediaType(kind); err == nil && kind != "text/event-stream" {
		what = kind + " and no stream of " + w.Of
	}
	return failing{w.none(what, head)}
}

// none is the error of an answer that is something else.
func (w *Watch) none(what, head string) error {
	return &AnswerError{fmt.Sprintf("%s answers with %s%s: %s", w.Place, what, w.begins(head), w.Advice)}
}

func (w *Watch) begins(head string) string {
	if head = excerpt(w.Mask(head)); head == "" {
		return ""
	}
	return " (it begins: " + head + ")"
}

// Empty is the error of a stream that has ended without anything of what was wanted: [io.ErrUnexpectedEOF] where there were but
// comments, by which servers keep a connection open.
func (w *Watch) Empty() error {
	if w.answer.silent() {
		return io.ErrUnexpectedEOF
	}
	return w.none("a stream that holds no "+w.Of, string(w.answer.first))
}

// Explain says of an error of a stream's that an event is no JSON, where it is so; all others it returns as they are.
func (w *Watch) Explain(err error) error {
	var syntax *json.SyntaxError
	if w.answer == nil || !errors.As(err, &syntax) {
		return err
	}
	return &AnswerError{fmt.Sprintf("%s sends what is no JSON in its stream%s: try again, and if it fails again, %s",
		w.Place, w.begins(w.answer.notJSON()), w.Advice)}
}

// answer is the body of a stream, and remembers of it what an error may have to show.
type answer struct {
	io.Reader
	io.Closer
	first, recent []byte
	cut           bool // something has been left out before recent
}

// kept is how many of the last bytes are remembered at least: more than an SDK reads ahead.
const kept = 64 << 10

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if free := 1024 - len(a.first); free > 0 {
		a.first = append(a.first, p[:min(n, free)]...)
	}
	if a.recent = append(a.recent, p[:n]...); len(a.recent) > 2*kept {
		a.recent, a.cut = append(a.recent[:0], a.recent[len(a.recent)-kept:]...), true
	}
	return n, err
}

// silent reports whether there have been no events.
func (a *answer) silent() bool {
	for line := range bytes.Lines(a.recent) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != ':' {
			return false
		}
	}
	return true
}

// notJSON is the first event that is no JSON; empty where it is not remembered.
func (a *answer) notJSON() string {
	lines := bytes.Split(a.recent, []byte("\n"))
	if a.cut {
		lines = lines[1:]
	}
	for _, line := range lines {
		data, found := bytes.CutPrefix(line, []byte("data:"))
		if data = bytes.TrimSpace(data); found && len(data) > 0 && !bytes.HasPrefix(data, []byte("[DONE]")) && !json.Valid(data) {
			return string(data)
		}
	}
	return ""
}

// excerpt is the beginning of a text as it may be shown: in one line, and without what a terminal would take for a command.
func excerpt(text string) string {
	const longest = 80
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError }), " ")
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "…"
	}
	return text
}
