package streamable

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// response is the answer to a modern request: one JSON document, or an event stream from the first notification on, or
// from when the call has taken a while.
type response struct {
	server  *Server
	w       http.ResponseWriter
	request *http.Request
	accept  accepts
	in      transport.Incoming
	cancel  context.CancelCauseFunc // ends the call

	mu     sync.Mutex
	stream *eventstream.Writer // nil while the answer may still be one document
	timer  *time.Timer
	over   bool
}

// begin arms the timer that turns the response into a stream.
func (r *response) begin() {
	if wait := r.server.jsonFor(r.accept); wait > 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.timer = time.AfterFunc(wait, r.open)
	}
}

// jsonFor returns how long an answer may be one document; 0 for as long as it likes. What cannot be one has to be opened
// all the same.
func (s *Server) jsonFor(a accepts) time.Duration {
	switch {
	case !a.stream:
		return 0
	case !a.json && s.opts.JSONFor < 0:
		return DefaultJSONFor
	}
	return max(0, s.opts.JSONFor)
}

func (r *response) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		_ = r.events().Open() // a client that has gone shows when something is written
	}
}

// events returns the stream; r.mu is held.
func (r *response) events() *eventstream.Writer {
	if r.stream == nil {
		r.stream = r.server.newStream(r.w)
	}
	return r.stream
}

func (s *Server) newStream(w http.ResponseWriter) *eventstream.Writer {
	return eventstream.NewWriter(w, eventstream.WriterOptions{KeepAlive: s.opts.KeepAlive})
}

// Write implements [transport.Writer]. A client that takes no stream gets no notifications.
func (r *response) Write(frame []byte) error {
	stream := r.live()
	if stream == nil {
		return nil
	}
	r.server.opts.Tap.Show(transport.Sent, frame, nil)
	if stream.Send(eventstream.Event{Data: frame}) != nil {
		return mcp.ErrPeerGone
	}
	return nil
}

// TryWrite implements [transport.TryWriter].
func (r *response) TryWrite(frame []byte) bool {
	stream := r.live()
	if stream == nil || !stream.TrySend(eventstream.Event{Data: frame}) {
		return false
	}
	r.server.opts.Tap.Show(transport.Sent, frame, nil)
	return true
}

func (r *response) live() *eventstream.Writer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !r.accept.stream {
		return nil
	}
	return r.events()
}

// finish sends what the request has come to.
func (r *response) finish(answer transport.Outgoing) {
	r.mu.Lock()
	r.over = true
	if !r.accept.json && answer.Frame != nil {
		r.events()
	}
	stream := r.stream
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	switch {
	case stream == nil && answer.Frame != nil:
		r.server.respond(r.w, status(answer.Error), answer.Frame)
	case stream != nil && answer.Frame != nil:
		r.server.opts.Tap.Show(transport.Sent, answer.Frame, nil)
		_ = stream.End(eventstream.Event{Data: answer.Frame}) // who has gone needs no answer
	case stream != nil:
		_ = stream.Close()
	}
}
