package eventstream

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"time"
)

// Limits of a [Reader].
const (
	DefaultLimit = 16 << 20 // bytes of an event's data
	maxField     = 4 << 10  // bytes of any other field
	windowSize       = 4 << 10  // bytes that are read at once, but for long data
	sampleSize       = 256      // bytes at either end that are kept of data over the limit
)

// Reader reads events. It is not safe for concurrent use.
//
// It differs from a browser in two ways. A block with an id or a retry but without data is an event, since MCP primes
// clients with such blocks. And text is not checked: what is no UTF-8 passes as it is.
type Reader struct {
	src   io.Reader
	limit int
	err   error // of src, once there was one

	readBuffer     []byte // what is read into, except where data is long
	buf     []byte // what was read: own, or memory behind the data, whose writing never overtakes the reading
	pos     int    // of what has not been looked at
	lf, cr  int    // the first LF and CR in buf that were not before pos when they were looked for; len(buf) for none
	afterCR bool   // an LF would belong to the line end before it
	firstLineRead   bool   // the first line, which may have a byte order mark, is over

	line  line
	block block
}

// line is a line of which a part has been read.
type line struct {
	stage stage
	field field
	name  [len(byteOrderMark) + len("event") + 1]byte
	n     int // of name: a name that fills it all is none that is known
}

type stage uint8

const (
	inName stage = iota
	atSpace
	inValue
)

type field uint8

const (
	ignored field = iota
	dataLine
	idLine
	nameLine
	retryLine
)

const byteOrderMark = "\ufeff"

// block is an event of which some lines have been read.
type block struct {
	Event
	isStarted    bool
	hasData  bool
	tooLarge *TooLargeError
	value    []byte // of a line that is no data; its memory is used again
}

// NewReader returns a reader of r. limit bounds the data of one event in bytes; 0 is [DefaultLimit]. It reads ahead, but
// never waits for bytes behind the end of an event.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{src: r, limit: limit, readBuffer: make([]byte, windowSize), lf: -1, cr: -1}
}

// Next returns the next event, whose data is the caller's. The error is io.EOF at the end of the input,
// io.ErrUnexpectedEOF where that cuts an event off, and the input's own error where it has one. An error that wraps
// [ErrTooLarge], a [*TooLargeError], concerns one event: the next Next returns the one behind it.
func (r *Reader) Next() (Event, error) {
	for {
		if r.pos == len(r.buf) {
			if err := r.fillBuffer(); err != nil {
				return Event{}, err
			}
		}
		if r.afterCR {
			r.afterCR = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				continue
			}
		}
		end := r.lineEnd()
		r.readLinePart(r.buf[r.pos:end])
		r.pos = end
		if end == len(r.buf) {
			continue
		}
		r.afterCR = r.buf[end] == '\r'
		r.pos++
		if !r.endLine() {
			continue
		}
		if e, err, ok := r.endBlock(); ok {
			return e, err
		}
	}
}

// lineEnd returns the index of the next CR or LF; len(buf) where there is none. No byte is searched twice.
func (r *Reader) lineEnd() int {
	if r.lf < r.pos {
		r.lf = indexFrom(r.buf, r.pos, '\n')
	}
	if r.cr < r.pos {
		r.cr = indexFrom(r.buf, r.pos, '\r')
	}
	return min(r.lf, r.cr)
}

func indexFrom(b []byte, pos int, c byte) int {
	if i := bytes.IndexByte(b[pos:], c); i >= 0 {
		return pos + i
	}
	return len(b)
}

// fillBuffer reads more: behind the data where that is long, so that it is not copied from there.
func (r *Reader) fillBuffer() error {
	if r.err != nil {
		return r.endError()
	}
	into := r.readBuffer
	if b := &r.block; r.line.field == dataLine && r.line.stage == inValue && len(b.Data) >= windowSize/2 {
		const least = 512
		if cap(b.Data)-len(b.Data) < least {
			b.Data = slices.Grow(b.Data, min(len(b.Data), r.limit-len(b.Data)))
		}
		if spare := b.Data[len(b.Data):cap(b.Data)]; len(spare) >= least {
			into = spare
		}
	}
	n, err := 0, error(nil)
	for tries := 0; n == 0 && err == nil; tries++ {
		if tries == 100 {
			err = io.ErrNoProgress
			break
		}
		n, err = r.src.Read(into)
	}
	r.buf, r.pos, r.lf, r.cr, r.err = into[:n], 0, -1, -1, err
	if n == 0 {
		return r.endError()
	}
	return nil
}

// endError is the error at the end of the input.
func (r *Reader) endError() error {
	cut := r.block.isStarted || r.line.stage == inName && len(r.lineName()) > 0
	if errors.Is(r.err, io.EOF) && cut {
		return io.ErrUnexpectedEOF
	}
	return r.err
}

// readLinePart takes the next bytes of a line, which may alias the memory behind the data.
func (r *Reader) readLinePart(b []byte) {
	if r.line.stage == inName {
		i := bytes.IndexByte(b, ':')
		if i < 0 {
			r.line.n += copy(r.line.name[r.line.n:], b)
			return
		}
		r.line.n += copy(r.line.name[r.line.n:], b[:i])
		r.beginValue()
		b = b[i+1:]
	}
	if r.line.stage == atSpace && len(b) > 0 {
		r.line.stage = inValue
		if b[0] == ' ' {
			b = b[1:]
		}
	}
	switch r.line.field {
	case ignored:
	case dataLine:
		r.appendData(b)
	default:
		if len(r.block.value)+len(b) > maxField {
			r.markTooLarge()
			r.line.field, r.block.value = ignored, r.block.value[:0]
			return
		}
		r.block.value = append(r.block.value, b...)
	}
}

// lineName is the name of the line's field as far as it has been read.
func (r *Reader) lineName() []byte {
	name := r.line.name[:r.line.n]
	if !r.firstLineRead {
		name = bytes.TrimPrefix(name, []byte(byteOrderMark))
	}
	return name
}

func (r *Reader) beginValue() {
	r.line.stage = atSpace
	name := r.lineName()
	switch string(name) {
	case "data":
		r.line.field = dataLine
		if r.block.hasData {
			r.appendData([]byte{'\n'})
		}
		r.block.hasData = true
	case "id":
		r.line.field = idLine
	case "event":
		r.line.field = nameLine
	case "retry":
		r.line.field = retryLine
	}
	r.block.isStarted = r.block.isStarted || len(name) > 0 // else it is a comment
}

func (r *Reader) appendData(b []byte) {
	e := &r.block
	if e.tooLarge == nil && len(e.Data)+len(b) <= r.limit {
		e.Data = append(e.Data, b...)
		return
	}
	r.markTooLarge()
	lost := e.tooLarge
	lost.Size += int64(len(b))
	lost.DataHead = append(lost.DataHead, b[:min(len(b), sampleSize-len(lost.DataHead))]...)
	lost.DataTail = appendTail(lost.DataTail, b)
}

// markTooLarge gives the event up: its data is let go, but for its ends.
func (r *Reader) markTooLarge() {
	e := &r.block
	if e.tooLarge != nil {
		return
	}
	e.tooLarge = &TooLargeError{
		Size: int64(len(e.Data)), Limit: r.limit,
		DataHead: append(make([]byte, 0, sampleSize), e.Data[:min(len(e.Data), sampleSize)]...),
		DataTail: appendTail(make([]byte, 0, 2*sampleSize), e.Data),
	}
	e.Data = nil
}

// appendTail keeps the last bytes of tail and b, in the memory of tail.
func appendTail(tail, b []byte) []byte {
	if len(b) >= sampleSize {
		return append(tail[:0], b[len(b)-sampleSize:]...)
	}
	tail = append(tail, b...)
	n := copy(tail, tail[max(0, len(tail)-sampleSize):])
	return tail[:n]
}

// endLine ends a line and reports whether it was empty.
func (r *Reader) endLine() bool {
	blank := r.line.stage == inName && len(r.lineName()) == 0
	if !blank {
		if r.line.stage == inName {
			r.beginValue()
		}
		r.endField()
	}
	r.firstLineRead = true
	r.line.stage, r.line.field, r.line.n = inName, ignored, 0
	return blank
}

func (r *Reader) endField() {
	e := &r.block
	switch r.line.field {
	case ignored, dataLine:
		return
	case idLine:
		if bytes.IndexByte(e.value, 0) < 0 {
			e.ID, e.HasID = string(e.value), true
		}
	case nameLine:
		e.Name = ""
		if string(e.value) != message {
			e.Name = string(e.value)
		}
	case retryLine:
		if d, ok := parseRetry(e.value); ok {
			e.Retry = d
		}
	}
	e.value = e.value[:0]
}

// parseRetry reads milliseconds, which are digits only. What no Duration can hold is the longest one.
func parseRetry(digits []byte) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	var ms int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), most)
	}
	return max(time.Duration(ms)*time.Millisecond, 1), len(digits) > 0
}

// endBlock ends a block; ok is false where it is no event.
func (r *Reader) endBlock() (e Event, err error, ok bool) {
	b := &r.block
	e, lost, hasData := b.Event, b.tooLarge, b.hasData
	*b = block{value: b.value}
	if lost != nil {
		lost.Event = e
		return Event{}, lost, true
	}
	e.Data = slices.Clip(e.Data) // what is behind may not have been looked at
	return e, nil, hasData || e.HasID || e.Retry > 0
}
