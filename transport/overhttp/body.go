package overhttp

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

	"github.com/dowel-mcp/dowel/internal/timeout"
)

// Bodies reads the messages that are POSTed to an endpoint. It is safe for concurrent use.
type Bodies struct {
	limit     int64
	timeout   time.Duration
	deadlines *timeout.Queue
}

// NewBodies returns what reads bodies of at most limit bytes, each of which may take so long to come.
func NewBodies(limit int64, patience time.Duration) *Bodies {
	return &Bodies{limit, patience, timeout.New(patience)}
}

// Read reads the message of a POST, which must be JSON. Where it cannot, it has answered the request, with 415, 413, 408 or
// 400, and reports false.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) (frame []byte, ok bool) {
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
	frame, err := ReadAll(body, r.ContentLength)
	b.deadlines.Stop(&deadline.entry)
	if deadline.clear(); err == nil {
		return frame, true
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.timeout)) // for the rest, which net/http reads past
	b.refuseBody(w, err)
	return nil, false
}

func (b *Bodies) refuseBody(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	switch { // the error itself may name addresses that are nobody's business
	case errors.As(err, &large):
		refuseSize(w, b.limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		Refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %v", b.timeout))
	default:
		Refuse(w, http.StatusBadRequest, "the body could not be read to its end")
	}
}

// bodyDeadline ends the reading of a body that is late.
type bodyDeadline struct {
	entry timeout.Entry
	w     http.ResponseWriter

	mu             sync.Mutex
	wasSet, isDone bool
}

// Expire implements [timeout.Expirer].
func (d *bodyDeadline) Expire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.isDone {
		d.wasSet = http.NewResponseController(d.w).SetReadDeadline(time.Unix(1, 0)) == nil
	}
}

// clear lets the connection be read again, which would be taken for dead otherwise.
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
	w.Header().Set("Connection", "close") // the rest is not read
	Refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", limit))
}

// ReadAll is io.ReadAll for a body that is mostly as long as it says; a length below 0 is not known.
func ReadAll(r io.Reader, length int64) ([]byte, error) {
	const first, believed = 512, 64 << 10 // what is believed of a length before so many bytes have come
	if length < 0 {
		length = first
	}
	buf := make([]byte, 0, min(length, believed)+1)
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
