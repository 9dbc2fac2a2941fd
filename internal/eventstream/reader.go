package eventstream

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"time"
)

// Limits of a [Reader], in bytes.
const (
	DefaultLimit = 16 << 20 // of an event's data
	maxField     = 4 << 10  // of any other field
	windowSize   = 4 << 10  // read at once, except for long data
	sampleSize   = 256      // kept of each end of data over the limit
)

// Reader reads events. It is not safe for concurrent use.
//
// It differs from a browser in two ways. A block with an id or a retry but without data is an
// event, because MCP uses such blocks to let clients resume. And it does not check that text is
// valid UTF-8.
type Reader struct {
	src   io.Reader
	limit int
	err   error // of src, after an error

	readBuffer    []byte // receives input, except long data
	buf           []byte // the input: readBuffer, or memory after the data, which is written more slowly than read
	pos           int    // the first byte of buf that is not parsed
	lf, cr        int    // the first LF and CR in buf at or after pos, as last searched; len(buf) if not found
	afterCR       bool   // the byte before pos was a CR; an LF belongs to it
	firstLineRead bool   // the first line, which may begin with a byte order mark, has ended

	line  line
	block block
}

// line is the state of a line that has been read in part.
type line struct {
	stage stage
	field field
	name  [len(byteOrderMark) + len("event") + 1]byte
	n     int // length of name; a name that fills the array is unknown
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

// block is the state of an event of which some lines have been read.
type block struct {
	Event
	isStarted bool
	hasData   bool
	tooLarge  *TooLargeError
	value     []byte // of a line that is not data; the memory is reused
}

// NewReader returns a reader of r. limit bounds the data of one event in bytes; 0 means
// [DefaultLimit]. The reader reads ahead, but it never waits for input after the end of an event.
func NewReader(r io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{src: r, limit: limit, readBuffer: make([]byte, windowSize), lf: -1, cr: -1}
}

// Next returns the next event. Its data belongs to the caller. The error is io.EOF at the end of
// the input, io.ErrUnexpectedEOF if the input ends within an event, or the error of the input. An
// error that wraps [ErrTooLarge], a [*TooLargeError], affects only one event: Next can be called
// again.
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

// lineEnd returns the index of the next CR or LF, or len(buf). It searches no byte twice.
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

// fillBuffer reads more input. Long data is read directly after the data before it, to save a copy.
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

// endError returns the error for the end of the input.
func (r *Reader) endError() error {
	cut := r.block.isStarted || r.line.stage == inName && len(r.lineName()) > 0
	if errors.Is(r.err, io.EOF) && cut {
		return io.ErrUnexpectedEOF
	}
	return r.err
}

// readLinePart parses the next bytes of a line. b may alias the memory after the data.
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

// lineName returns the part of the field name that has been read.
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
	r.block.isStarted = r.block.isStarted || len(name) > 0 // an empty name is a comment
}

func (r *Reader) appendData(b []byte) {
	e := &r.block
	if e.tooLarge == nil && len(e.Data)+len(b) <= r.limit {
		e.Data = append(e.Data, b...)
		return
	}
	r.markTooLarge()
	tooLarge := e.tooLarge
	tooLarge.Size += int64(len(b))
	tooLarge.DataHead = append(tooLarge.DataHead, b[:min(len(b), sampleSize-len(tooLarge.DataHead))]...)
	tooLarge.DataTail = appendTail(tooLarge.DataTail, b)
}

// markTooLarge drops the data of an event over the limit, except its beginning and end.
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

// appendTail returns the last bytes of tail and b together, in the memory of tail.
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

// parseRetry parses milliseconds, which must be digits. A value that overflows a Duration becomes
// the longest one.
func parseRetry(digits []byte) (time.Duration, bool) {
	const maxMillis = math.MaxInt64 / int64(time.Millisecond)
	var ms int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), maxMillis)
	}
	return max(time.Duration(ms)*time.Millisecond, 1), len(digits) > 0
}

// endBlock ends a block. ok is false if the block is not an event.
func (r *Reader) endBlock() (e Event, err error, ok bool) {
	b := &r.block
	e, tooLarge, hasData := b.Event, b.tooLarge, b.hasData
	*b = block{value: b.value}
	if tooLarge != nil {
		tooLarge.Event = e
		return Event{}, tooLarge, true
	}
	e.Data = slices.Clip(e.Data) // the memory after the data may hold input that is not parsed yet
	return e, nil, hasData || e.HasID || e.Retry > 0
}
