// Package eventstream reads and writes server-sent events (WHATWG HTML, section 9.2) for MCP. A
// [Reader] parses the events of a response. A [Writer] turns the response of an http.Handler into a
// stream: it is safe for concurrent use, keeps idle streams alive, bounds its queue, and cuts off
// clients that do not read. An idle stream costs neither a goroutine nor a buffer.
package eventstream

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Event is one event of a stream. An empty Name means "message".
type Event struct {
	ID    string
	HasID bool // the event has an id field; an empty one resets the id
	Name  string
	Data  []byte
	Retry time.Duration // 0 means no retry field; a field of 0 ms is 1 ns
}

// message is the name of an event without a name field.
const message = "message"

// Encode returns the encoded event, for [Writer.SendEncoded] to any number of streams. A line break
// in the data becomes LF for the reader. In an id or a name, line breaks and NULs are removed. An
// event with an id and without data, which lets a client resume, has an empty data field. An event
// with only a retry has none, because clients take data for a message.
func Encode(e Event) []byte { return e.Append(make([]byte, 0, e.encodedSize())) }

// Append appends the encoded event to dst.
func (e Event) Append(dst []byte) []byte {
	dst = e.appendHead(dst)
	if e.hasData() {
		dst = appendData(dst, e.Data)
	}
	return append(dst, '\n')
}

func (e Event) appendHead(dst []byte) []byte {
	if e.Name != "" {
		dst = appendField(dst, "event: ", e.Name)
	}
	if e.HasID {
		dst = appendField(dst, "id: ", e.ID)
	}
	if e.Retry > 0 {
		dst = append(dst, "retry: "...)
		dst = strconv.AppendInt(dst, e.Retry.Milliseconds(), 10)
		dst = append(dst, '\n')
	}
	return dst
}

func (e Event) hasData() bool { return len(e.Data) > 0 || e.HasID || e.Retry <= 0 }

func appendField(dst []byte, field, value string) []byte {
	if strings.ContainsAny(value, "\r\n\x00") {
		value = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(value)
	}
	dst = append(dst, field...)
	dst = append(dst, value...)
	return append(dst, '\n')
}

const dataField = "data: "

func appendData(dst, data []byte) []byte {
	for {
		i := lineBreak(data)
		dst = append(dst, dataField...)
		if i < 0 {
			return append(append(dst, data...), '\n')
		}
		dst = append(append(dst, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}

// lineBreak returns the index of the first CR or LF, or -1. JSON contains none, so both searches
// run to the end, and the second one is bounded by the first.
func lineBreak(data []byte) int {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		return bytes.IndexByte(data, '\r')
	}
	if j := bytes.IndexByte(data[:i], '\r'); j >= 0 {
		return j
	}
	return i
}

// encodedSize returns an upper bound of the encoded length, if the data is one line.
func (e Event) encodedSize() int {
	const fields = len("event: \nid: \nretry: 9223372036854\ndata: \n\n")
	return fields + len(e.Name) + len(e.ID) + len(e.Data)
}

// ErrTooLarge is wrapped by the error of [Reader.Next] for an event over the limit. The next events
// can still be read.
var ErrTooLarge = errors.New("the event is too large")

// TooLargeError describes an event over the limit.
type TooLargeError struct {
	Event          // without its data
	Size     int64 // of the data in bytes; within Limit if another field was too long
	Limit    int
	DataHead []byte // the beginning of the data
	DataTail []byte // the end of the data
}

func (e *TooLargeError) Error() string {
	if e.Size <= int64(e.Limit) {
		return ErrTooLarge.Error() + ": an id, name or retry of more than " + strconv.Itoa(maxField) + " bytes"
	}
	return ErrTooLarge.Error() + ": " + strconv.FormatInt(e.Size, 10) + " bytes of data, the limit is " + strconv.Itoa(e.Limit)
}

// Unwrap returns [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }
