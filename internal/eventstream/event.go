package eventstream

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Event is one event of a stream. An empty Name is "message".
type Event struct {
	ID    string
	HasID bool // an id was given, which may be empty: that resets it
	Name  string
	Data  []byte
	Retry time.Duration // 0: none was given. A retry of 0 ms is 1 ns: at once
}

// message is the name of events without one.
const message = "message"

// Encode returns the event as it goes over the wire, for [Writer.SendEncoded] to any number of streams. Line breaks within
// the data, which a reader sees as LF, separate lines of it; in an id or a name they are left out, and so are NULs. An
// event with an id and without data, which primes a client to come back, has an empty data field; one with a retry only
// has none: clients take data for a message.
func Encode(e Event) []byte { return e.Append(make([]byte, 0, e.encodedSize())) }

// Append is [Encode] behind dst.
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

// lineBreak returns the index of the first CR or LF, or -1. JSON has none: both searches run through, and neither runs
// again from where the other stopped.
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

// encodedSize bounds the length of the event on the wire where its data is one line.
func (e Event) encodedSize() int {
	const fields = len("event: \nid: \nretry: 9223372036854\ndata: \n\n")
	return fields + len(e.Name) + len(e.ID) + len(e.Data)
}

// ErrTooLarge is wrapped by the error of [Reader.Next] for one event that is over the limit. Reading goes on.
var ErrTooLarge = errors.New("the event is too large")

// TooLargeError is an event over the limit: what is known of it.
type TooLargeError struct {
	Event          // without its data
	Size     int64 // of its data, in bytes; within the limit where it was another field that was too long
	Limit    int
	DataHead []byte // where the data begins
	DataTail []byte // where it ends
}

func (e *TooLargeError) Error() string {
	if e.Size <= int64(e.Limit) {
		return ErrTooLarge.Error() + ": an id, name or retry of more than " + strconv.Itoa(maxField) + " bytes"
	}
	return ErrTooLarge.Error() + ": " + strconv.FormatInt(e.Size, 10) + " bytes of data, the limit is " + strconv.Itoa(e.Limit)
}

// Unwrap makes errors.Is find [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }
