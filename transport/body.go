package transport

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"time"
)

// ReadBody reads the message of a POST: JSON of at most limit bytes, which may take so long to come. Where it cannot, it has
// answered the request, with 415, 413, 408 or 400, and reports false.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64, timeout time.Duration) (frame []byte, ok bool) {
	if !isJSON(r.Header.Get("Content-Type")) {
		Refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return nil, false
	}
	if r.ContentLength > limit {
		refuseSize(w, limit)
		return nil, false
	}
	control := http.NewResponseController(w)
	bounded := control.SetReadDeadline(time.Now().Add(timeout)) == nil
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, body, limit)
	}
	frame, err := ReadAll(body, r.ContentLength)
	if err == nil {
		if bounded {
			_ = control.SetReadDeadline(time.Time{}) // or the connection would be taken for dead
		}
		return frame, true
	}
	var large *http.MaxBytesError
	switch { // the error itself may name addresses that are nobody's business
	case errors.As(err, &large):
		refuseSize(w, limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		Refuse(w, http.StatusRequestTimeout, fmt.Sprintf("the body did not come within %v", timeout))
	default:
		Refuse(w, http.StatusBadRequest, "the body could not be read to its end")
	}
	return nil, false
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
