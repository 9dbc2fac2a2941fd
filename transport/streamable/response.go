package streamable

import (
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// response is the answer to a modern request: one JSON document, or an event stream from the first notification on, or
// from when the call has taken a while.
type response struct {
	server    *Server
	w         http.ResponseWriter
	request   *http.Request
	accept    acceptedTypes
	in        serving.Incoming
	ctx       callContext
	slowTimer timeout.Entry

	mu       sync.Mutex
	stream   *eventstream.Writer // nil while the answer may still be one document
	finished bool
}

// startSlowTimer starts the time after which the response becomes a stream.
func (r *response) startSlowTimer() {
	if r.server.opensStream(r.accept) {
		r.server.slowAnswers.Start(&r.slowTimer, r)
	}
}

// opensStream reports whether a slow answer becomes a stream. What cannot be one document has to be opened in any case.
func (s *Server) opensStream(a acceptedTypes) bool {
	return a.stream && (s.opts.JSONFor > 0 || !a.json)
}

// Expire implements [timeout.Expirer].
func (r *response) Expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.finished {
		_ = r.eventWriter().Open() // a client that has gone shows when something is written
	}
}

// eventWriter returns the stream; r.mu is held.
func (r *response) eventWriter() *eventstream.Writer {
	if r.stream == nil {
		r.stream = r.server.newEventWriter(r.w)
	}
	return r.stream
}

func (s *Server) newEventWriter(w http.ResponseWriter) *eventstream.Writer {
	return eventstream.NewWriter(w, eventstream.WriterOptions{KeepAlive: s.opts.KeepAlive})
}

// Write implements [serving.Writer]. A client that takes no stream gets no notifications.
func (r *response) Write(frame []byte) error {
	stream := r.writableStream()
	if stream == nil {
		return nil
	}
	frames.Show(r.server.opts.Tap, transport.Sent, frame, nil)
	if stream.Send(eventstream.Event{Data: frame}) != nil {
		return mcp.ErrPeerGone
	}
	return nil
}

// TryWrite implements [transport.TryWriter].
func (r *response) TryWrite(frame []byte) bool {
	stream := r.writableStream()
	if stream == nil || !stream.TrySend(eventstream.Event{Data: frame}) {
		return false
	}
	frames.Show(r.server.opts.Tap, transport.Sent, frame, nil)
	return true
}

func (r *response) writableStream() *eventstream.Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished || !r.accept.stream {
		return nil
	}
	return r.eventWriter()
}

// finishResponse sends what the request has come to.
func (r *response) finishResponse(answer serving.Outgoing) {
	r.mu.Lock()
	r.finished = true
	if !r.accept.json && answer.Frame != nil {
		r.eventWriter()
	}
	stream := r.stream
	r.mu.Unlock()
	r.server.slowAnswers.Stop(&r.slowTimer)
	switch {
	case stream == nil && answer.Frame != nil:
		r.server.writeDocument(r.w, httpStatus(answer.Error), answer.Frame)
	case stream != nil && answer.Frame != nil:
		frames.Show(r.server.opts.Tap, transport.Sent, answer.Frame, nil)
		_ = stream.End(eventstream.Event{Data: answer.Frame}) // who has gone needs no answer
	case stream != nil:
		_ = stream.Close()
	}
}
