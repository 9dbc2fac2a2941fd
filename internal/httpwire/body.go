package httpwire

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// BodyReader reads the messages that clients POST to an endpoint. It is safe for concurrent use.
type BodyReader struct {
	limit     int64
	timeout   time.Duration
	deadlines *timeout.Queue
	quota     *quota.Quota
}

// NewBodyReader returns a reader of bodies that have at most limit bytes and arrive completely
// within the timeout. q counts them; nil means the quota that the process shares.
func NewBodyReader(limit int64, bodyTimeout time.Duration, q *quota.Quota) *BodyReader {
	return &BodyReader{limit, bodyTimeout, timeout.New(bodyTimeout), quota.Or(q)}
}

// Read reads the body of a POST, which must be JSON. The body of the client p counts until it has
// arrived. If Read fails, it has answered the request with status 415, 413, 408, 429, 503 or 400,
// and ok is false.
func (b *BodyReader) Read(w http.ResponseWriter, r *http.Request, p mcp.Principal) (frame []byte, ok bool) {
	if !isJSON(r.Header.Get("Content-Type")) {
		Refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return nil, false
	}
	if r.ContentLength > b.limit {
		refuseSize(w, b.limit)
		return nil, false
	}
	deadline := &bodyDeadline{w: w}
	b.deadlines.Start(&deadline.entry, deadline)
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, body, b.limit)
	}
	var counted *countedBody
	if r.ContentLength < 0 || r.ContentLength > uncountedBody {
		account := quota.Account{Quota: b.quota, Client: ClientOf(r, p)}
		counted = &countedBody{reader: body, length: r.ContentLength, lease: account.NewLease(deadline)}
		defer counted.lease.Release()
		body = io.NopCloser(counted)
	}
	frame, err := ReadBody(body, r.ContentLength)
	b.deadlines.Stop(&deadline.entry)
	if deadline.clear(); err == nil {
		return frame, true
	}
	// net/http reads the rest of the body before it uses the connection again. The deadline bounds
	// that.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout))
	if cause := deadline.cutOffReason(); cause != nil {
		err = cause
	}
	b.refuseBody(w, err)
	return nil, false
}

// refuseBody answers a request whose body could not be read. It does not quote err, which may
// contain internal addresses.
func (b *BodyReader) refuseBody(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	var limit *quota.LimitError
	switch {
	case errors.As(err, &limit):
		w.Header().Set("Connection", "close")
		RefuseLimit(w, jsonrpc.ID{}, limit)
	case errors.As(err, &large):
		refuseSize(w, b.limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		Refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not arrive within %v", b.timeout))
	default:
		Refuse(w, http.StatusBadRequest, "the body could not be read to its end")
	}
}

// bodyDeadline stops the reading of a body that takes too long. It costs less than a read deadline
// for each request, because most bodies arrive at once.
type bodyDeadline struct {
	entry timeout.Entry
	w     http.ResponseWriter

	mu     sync.Mutex
	wasSet bool  // Expire has set the connection's read deadline
	isDone bool  // the body has been read
	reason error // why the body was cut off before its time; nil if it was not
}

// CutOff implements [quota.Waiter].
func (d *bodyDeadline) CutOff(reason error) {
	d.mu.Lock()
	d.reason = reason
	d.mu.Unlock()
	d.Expire()
}

func (d *bodyDeadline) cutOffReason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reason
}

// Expire implements [timeout.Expirer]. It makes the pending read fail.
func (d *bodyDeadline) Expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isDone {
		d.wasSet = http.NewResponseController(d.w).SetReadDeadline(time.Unix(1, 0)) == nil
	}
}

// clear removes the read deadline if Expire has set it. Otherwise net/http would treat the
// connection as dead.
func (d *bodyDeadline) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isDone = true; d.wasSet {
		_ = http.NewResponseController(d.w).SetReadDeadline(time.Time{})
	}
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

func refuseSize(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close") // the rest of the body is not read
	Refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", limit))
}

// uncountedBody is the number of bytes of a body that do not count while the rest is awaited.
const uncountedBody = 64 << 10

// countedBody counts a body while it arrives.
type countedBody struct {
	reader io.Reader
	length int64 // as declared, or negative if it is unknown
	read   int64
	lease  *quota.Lease
}

// Read implements [io.Reader].
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if c.read += int64(n); c.read <= uncountedBody {
		return n, err
	}
	if refused := c.lease.Extend(max(c.length, c.read)); refused != nil {
		return n, refused
	}
	c.lease.NoteProgress()
	return n, err
}

// ReadBody reads r to its end. length is the declared length, or negative if it is unknown.
// ReadBody allocates that much at once, but at most 64 KiB before the bytes arrive: a sender may
// declare any length.
func ReadBody(r io.Reader, length int64) ([]byte, error) {
	const unknownLength, maxTrusted = 512, uncountedBody
	if length < 0 {
		length = unknownLength
	}
	buf := make([]byte, 0, min(length, maxTrusted)+1)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, max(1, int(length)+1-len(buf)))
		}
	}
}

// MaxErrorBody is how many bytes an error keeps of the body of an HTTP answer.
const MaxErrorBody = 4 << 10

// ReadErrorBody reads the body of an answer that is an error, up to limit bytes or, if that is
// more, [MaxErrorBody]. If reading fails it returns the part that was read.
func ReadErrorBody(r *http.Response, limit int) []byte {
	body, _ := io.ReadAll(io.LimitReader(r.Body, int64(max(limit, MaxErrorBody))))
	return body
}
