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

	"github.com/dowel-mcp/dowel/internal/eventstream"
)

const (
	maxEvent = 32 << 20 // bytes of one event's data
	maxWhole = 16 << 20 // bytes of an answer without a stream
	maxHead  = 1 << 10  // bytes of a stream's beginning that errors may show
)

// Stream reads the events of an answer. It is not safe for concurrent use.
type Stream struct {
	client *Client
	header http.Header
	body   io.Closer
	source source
	events *eventstream.Reader
	empty  bool // no event has come yet
}

// openStream checks the first bytes of an answer: a proxy may have sent a login page, and servers
// exist that answer with a complete document. The content type does not count, because servers
// exist that send streams with a wrong one.
func (c *Client) openStream(res *http.Response) (*Stream, error) {
	s := &Stream{client: c, header: res.Header, body: res.Body, empty: true}
	r := bufio.NewReader(res.Body)
	_, err := r.Peek(1)
	head, _ := r.Peek(r.Buffered())
	s.source.Reader = r
	if err != nil && !errors.Is(err, io.EOF) {
		s.Close()
		return nil, err
	}
	if err != nil || !startsStream(head) {
		events, err := c.eventsOfWhole(r, res.Header.Get("Content-Type"), string(head))
		if err != nil {
			s.Close()
			return nil, err
		}
		s.source.Reader = bytes.NewReader(events)
	}
	s.events = eventstream.NewReader(&s.source, maxEvent)
	return s, nil
}

// startsStream reports whether head may be the beginning of an event stream.
func startsStream(head []byte) bool {
	text := strings.TrimLeft(string(head), "\ufeff\r\n\t ")
	for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
		if strings.HasPrefix(text, field) || strings.HasPrefix(field, text) {
			return true
		}
	}
	return false
}

// eventsOfWhole reads an answer that is not a stream. A complete JSON answer becomes its events;
// anything else is an error.
func (c *Client) eventsOfWhole(r io.Reader, contentType, head string) ([]byte, error) {
	if strings.HasPrefix(head, "{") {
		body, err := io.ReadAll(io.LimitReader(r, maxWhole))
		if err != nil {
			return nil, err
		}
		if events := c.EventsOf(body); events != nil {
			return events, nil
		}
		head = string(body)
	}
	if strings.TrimSpace(head) == "" {
		return nil, c.wrongAnswer("nothing, and no stream of "+c.Kind, "")
	}
	found := "something other than a stream of " + c.Kind
	if t, _, err := mime.ParseMediaType(contentType); err == nil && t != "text/event-stream" {
		found = t + " and no stream of " + c.Kind
	}
	return nil, c.wrongAnswer(found, head)
}

func (c *Client) wrongAnswer(found, head string) error {
	return &AnswerError{fmt.Sprintf("%s answers with %s%s: %s", c.Place, found, c.excerpt(head), c.Advice)}
}

// excerpt formats the beginning of the server's answer in parentheses after a space. It is "" if
// text is blank.
func (c *Client) excerpt(text string) string {
	if text = printableHead(c.Mask(text)); text == "" {
		return ""
	}
	return " (it begins: " + text + ")"
}

// Next returns the next event that carries data. The error is io.EOF at the end of the stream,
// and the connection's error if it breaks.
func (s *Stream) Next() (eventstream.Event, error) {
	for {
		event, err := s.events.Next()
		if errors.Is(err, io.ErrUnexpectedEOF) && !s.source.failed {
			s.empty, err = false, io.EOF // the end of the answer cuts an event off, which is dropped
		}
		if err != nil {
			return eventstream.Event{}, err
		}
		s.empty = false
		if len(event.Data) > 0 {
			return event, nil
		}
	}
}

// Decode reads the JSON of an event into v. A member of another type than v wants keeps its zero
// value, as servers differ in the members that dowel does not need. Text other than JSON is an
// [*AnswerError].
func (s *Stream) Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return nil
	}
	return &AnswerError{fmt.Sprintf("%s sent text other than JSON in its stream%s: try again, and if it fails again, %s",
		s.client.Place, s.client.excerpt(string(bytes.TrimSpace(data))), s.client.Advice)}
}

// ReadError reads the data of an event that reports an error, see [ReadError].
func (s *Stream) ReadError(data []byte) *ProviderError {
	e := ReadError([]byte(s.client.Mask(string(data))))
	e.RequestID = requestID(s.header)
	return e
}

// EmptyError is the error of a stream that has ended without any event of the wanted kind:
// io.ErrUnexpectedEOF if it held only comments, by which servers keep a connection open.
func (s *Stream) EmptyError() error {
	if s.empty {
		return io.ErrUnexpectedEOF
	}
	return s.client.wrongAnswer("a stream that holds no "+s.client.Kind, string(s.source.head))
}

// Close ends the answer.
func (s *Stream) Close() { s.body.Close() }

// source is the body of an answer. It keeps the beginning for error messages, and tells the end
// of the body apart from a broken connection, which net/http both report as an unexpected end.
type source struct {
	io.Reader
	head   []byte
	failed bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if free := maxHead - len(s.head); free > 0 {
		s.head = append(s.head, p[:min(n, free)]...)
	}
	s.failed = s.failed || err != nil && err != io.EOF
	return n, err
}

// printableHead returns the beginning of a text in one line, without control characters, which a
// terminal would obey.
func printableHead(text string) string {
	const longest = 80 // characters
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == utf8.RuneError }), " ")
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "…"
	}
	return text
}
