package streamable

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/transport"
)

// body reads the message of a POST. Where it cannot, the request has been answered.
func (s *Server) body(w http.ResponseWriter, r *http.Request) (frame []byte, ok bool) {
	if !isJSON(r.Header.Get("Content-Type")) {
		transport.Refuse(w, http.StatusUnsupportedMediaType, "Content-Type must be application/json")
		return nil, false
	}
	if r.ContentLength > s.opts.MaxBody {
		s.refuseSize(w)
		return nil, false
	}
	control := http.NewResponseController(w)
	slow := control.SetReadDeadline(time.Now().Add(s.opts.BodyTimeout)) == nil
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, body, s.opts.MaxBody)
	}
	frame, err := readAll(body, r.ContentLength)
	if err == nil {
		if slow {
			_ = control.SetReadDeadline(time.Time{}) // or the connection would be taken for dead
		}
		return frame, true
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		s.refuseSize(w)
	} else {
		transport.Refuse(w, http.StatusBadRequest, "the body could not be read: "+err.Error())
	}
	return nil, false
}

func (s *Server) refuseSize(w http.ResponseWriter) {
	w.Header().Set("Connection", "close") // the rest is not read
	transport.Refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", s.opts.MaxBody))
}

// readAll is io.ReadAll for a body that is mostly as long as it says.
func readAll(r io.Reader, length int64) ([]byte, error) {
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

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// accepts is what a client takes as the answer to a POST.
type accepts struct{ json, stream bool }

// accepted reads Accept, which must name both types; a client that names one of them gets what it can read.
func accepted(header http.Header) accepts {
	values := header["Accept"]
	if len(values) == 0 {
		return accepts{json: true, stream: true}
	}
	if len(values) == 1 && values[0] == "application/json, text/event-stream" {
		return accepts{json: true, stream: true}
	}
	var a accepts
	for _, part := range strings.Split(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil || params["q"] == "0" {
			continue
		}
		a.json = a.json || media == "application/json" || media == "application/*" || media == "*/*"
		a.stream = a.stream || media == "text/event-stream" || media == "text/*" || media == "*/*"
	}
	return a
}
