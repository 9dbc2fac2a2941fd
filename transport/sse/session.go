package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// session is a stream and the POSTs that name it: a [transport.Conn].
type session struct {
	server    *Server
	id        string
	principal mcp.Principal
	events    *eventstream.Writer
	cancel    context.CancelCauseFunc // ends it gracefully
	life      context.Context
	in        chan message
	over      chan struct{} // closed when nothing is read any more
	end       sync.Once
	header    http.Header // of the message read last; of the reading loop
	idle      idle
}

// message is the body of a POST.
type message struct {
	frame  []byte
	header http.Header
}

// Why a session ends.
var (
	errGone     = errors.New("the client has gone")
	errShutdown = errors.New(shuttingDown)
	errIdle     = errors.New("the client has sent nothing for too long")
)

func newSession(s *Server, w http.ResponseWriter, p mcp.Principal) *session {
	ss := &session{server: s, id: newSessionID(), principal: p, in: make(chan message), over: make(chan struct{})}
	ss.events = eventstream.NewWriter(w, eventstream.WriterOptions{KeepAlive: s.opts.KeepAlive})
	ss.life, ss.cancel = context.WithCancelCause(context.Background())
	return ss
}

// serve opens the stream and serves what comes, until the client goes or cancel is called. ctx has the values of the GET.
func (ss *session) serve(ctx context.Context, endpoint string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ss.life, func() { cancel(context.Cause(ss.life)) })()
	defer ss.cancel(nil)
	defer ss.Close()
	if ss.events.Send(eventstream.Event{Name: "endpoint", Data: []byte(endpoint)}) != nil {
		return
	}
	ss.idle.begin(ss)
	defer ss.idle.stop()
	opts := ss.server.opts.ServerOptions
	opts.Principal, opts.Tap = ss.principal, ss.tap(opts.Tap)
	err := overconn.Serve(ctx, ss, ss.watched(ss.server.handler), opts)
	if err != nil && !errors.Is(err, errShutdown) && !errors.Is(err, errIdle) {
		opts.Logger.Warn("a session over HTTP+SSE failed", "err", err)
	}
}

// tap adds the header fields of a POST to what is shown of it.
func (ss *session) tap(tap transport.Tap) transport.Tap {
	if tap == nil {
		return nil
	}
	return func(f transport.Frame) {
		if f.Kind == transport.Sent {
			tap(f)
			return
		}
		frames.Show(tap, f.Kind, f.Data, ss.header)
	}
}

// deliver gives a message to the reading loop; false where the session ends first.
func (ss *session) deliver(ctx context.Context, m message) bool {
	select {
	case ss.in <- m:
		return true
	case <-ss.over:
	case <-ss.events.Done():
	case <-ctx.Done():
	}
	return false
}

// Read implements [transport.Conn].
func (ss *session) Read() ([]byte, error) {
	select {
	case m := <-ss.in:
		ss.header = m.header
		return m.frame, nil
	case <-ss.over:
		return nil, io.EOF
	case <-ss.events.Done():
	}
	select {
	case <-ss.over: // which ends the stream too
		return nil, io.EOF
	default:
		return nil, fmt.Errorf("%w: %w", mcp.ErrConnection, ss.events.Err())
	}
}

// messageEvent is the name that the transport gives messages. It is what events without a name have too, but not every client
// knows that.
const messageEvent = "message"

// Header implements [transport.HeaderConn].
func (ss *session) Header() map[string][]string { return ss.header }

// Write implements [transport.Conn].
func (ss *session) Write(frame []byte) error {
	err := ss.events.Send(eventstream.Event{Name: messageEvent, Data: frame})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, eventstream.ErrClosed):
		return mcp.ErrClosed
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

// TryWrite implements [transport.TryWriter].
func (ss *session) TryWrite(frame []byte) bool {
	return ss.events.TrySend(eventstream.Event{Name: messageEvent, Data: frame})
}

// Close implements [transport.Conn]: what was written goes out first.
func (ss *session) Close() error {
	ss.end.Do(func() { close(ss.over) })
	return ss.events.Close()
}

// hangUp ends the session at once.
func (ss *session) hangUp(reason error) {
	ss.end.Do(func() { close(ss.over) })
	ss.events.CutOff(reason)
}
