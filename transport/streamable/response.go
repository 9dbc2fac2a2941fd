package streamable

import (
	"errors"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/lazyctx"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/internal/serving"
)

// response is the answer to a modern request. It is one JSON document, unless the handler sends a
// notification before the result or takes longer than [Options.JSONFor]. Then it is an event
// stream.
type response struct {
	server    *Server
	w         http.ResponseWriter
	request   *http.Request
	accept    acceptedTypes
	in        serving.Incoming
	ctx       lazyctx.Context
	slowTimer timeout.Entry

	mu       sync.Mutex
	stream   *eventstream.Writer // nil while the answer may still be a document
	finished bool
}

// startSlowTimer starts the timer after which the response becomes a stream. With
// [Options.StreamAtOnce] it becomes one now.
func (r *response) startSlowTimer() {
	switch {
	case r.server.opts.StreamAtOnce && r.accept.stream:
		r.Expire()
	case r.server.opensStream(r.accept):
		r.server.slowAnswers.Start(&r.slowTimer, r)
	}
}

// opensStream reports whether a slow answer becomes a stream. If the client accepts no document,
// that is always so.
func (s *Server) opensStream(a acceptedTypes) bool {
	return a.stream && (s.opts.JSONFor > 0 || !a.json)
}

// Expire implements [timeout.Expirer]. It makes the response a stream.
func (r *response) Expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.finished {
		_ = r.eventWriter().Open() // a later write fails if the client has disconnected
	}
}

// eventWriter returns the stream and makes the response one if needed. r.mu is held.
func (r *response) eventWriter() *eventstream.Writer {
	if r.stream == nil {
		r.stream = r.server.newEventWriter(r.w, r.client())
	}
	return r.stream
}

func (s *Server) newEventWriter(w http.ResponseWriter, c quota.Client) *eventstream.Writer {
	return eventstream.NewWriter(w, eventstream.WriterOptions{KeepAlive: s.opts.KeepAlive, Account: quota.Account{Quota: s.opts.Quota, Client: c}})
}

// client returns the client of the request.
func (r *response) client() quota.Client { return httpwire.ClientOf(r.request, r.in.Principal) }

// Write implements [serving.Writer]. A client that accepts no stream gets no notifications.
func (r *response) Write(frame []byte) error {
	stream := r.writableStream()
	if stream == nil {
		return nil
	}
	frames.ShowIn(r.request.Context(), r.server.opts.Tap, transport.Sent, frame, nil)
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
	frames.ShowIn(r.request.Context(), r.server.opts.Tap, transport.Sent, frame, nil)
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

// finishResponse sends the result or error of the request. An error with a status of its own is a
// document even for a client that accepts only event streams, unless the stream is open already:
// then the status has been sent.
func (r *response) finishResponse(answer serving.Outgoing) {
	r.mu.Lock()
	r.finished = true
	if !r.accept.json && answer.Frame != nil && httpStatus(answer.Error) == http.StatusOK {
		r.eventWriter()
	}
	stream := r.stream
	r.mu.Unlock()
	r.server.slowAnswers.Stop(&r.slowTimer)
	var err error
	switch {
	case stream == nil && answer.Frame != nil:
		err = r.server.writeAnswer(r.w, r.request, httpStatus(answer.Error), answer.Frame, r.client())
	case stream != nil && answer.Frame != nil:
		frames.ShowIn(r.request.Context(), r.server.opts.Tap, transport.Sent, answer.Frame, nil)
		err = stream.End(eventstream.Event{Data: answer.Frame}) // a client that has disconnected needs no answer
	case stream != nil:
		_ = stream.Close()
	}
	if limit, ok := errors.AsType[*quota.LimitError](err); ok {
		r.refuseAnswer(stream, limit)
	}
}

// refuseAnswer answers with an error in place of an answer that would exceed a limit.
func (r *response) refuseAnswer(stream *eventstream.Writer, limit *quota.LimitError) {
	refusal := serving.RefuseAnswer(r.in.ID, limit)
	if stream == nil {
		r.server.writeDocument(r.w, r.request, http.StatusOK, refusal)
		return
	}
	frames.ShowIn(r.request.Context(), r.server.opts.Tap, transport.Sent, refusal, nil)
	_ = stream.End(eventstream.Event{Data: refusal})
	_ = stream.Close()
}
