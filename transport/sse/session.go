package sse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// session is a stream and the POSTs that name it, a [transport.Conn].
type session struct {
	server    *Server
	id        string
	principal mcp.Principal
	account   quota.Account
	events    *eventstream.Writer
	cancel    context.CancelCauseFunc // ends the session gracefully
	life      context.Context
	incoming  chan message
	readEnd   chan struct{} // closed when the reading has ended
	endOnce   sync.Once
	last      message // the message read last; used only by the reading loop
	idleTimer idleTimer
}

// message is the body of a POST and the facts that came with it.
type message struct {
	frame     []byte
	header    http.Header
	principal mcp.Principal
}

// The reasons for the end of a session.
var (
	errClientGone = errors.New("the client has disconnected")
	errIdle       = errors.New("the client has sent nothing for too long")
)

func newSession(s *Server, w http.ResponseWriter, p mcp.Principal, c quota.Client) *session {
	ss := &session{server: s, id: s.peers.newSessionID(), principal: p, incoming: make(chan message), readEnd: make(chan struct{})}
	ss.account = quota.Account{Quota: s.opts.Quota, Client: c}
	ss.events = eventstream.NewWriter(w, eventstream.WriterOptions{KeepAlive: s.opts.KeepAlive, Account: ss.account, KeepAtLimit: true})
	ss.life, ss.cancel = context.WithCancelCause(context.Background())
	return ss
}

// serveStream opens the stream and serves the session until the client disconnects or cancel is
// called. ctx has the values of the GET's context.
func (ss *session) serveStream(ctx context.Context, endpoint string) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ss.life, func() { cancel(context.Cause(ss.life)) })()
	defer ss.cancel(nil)
	defer ss.Close()
	if ss.events.Send(eventstream.Event{Name: "endpoint", Data: []byte(endpoint)}) != nil {
		return
	}
	ss.idleTimer.start(ss)
	defer ss.idleTimer.stop()
	opts := ss.server.opts.ServerOptions
	opts.Principal, opts.Tap = ss.principal, ss.headerTap(opts.Tap)
	opts.Quota = quota.None // ss.events counts what waits, and legacy clients do not subscribe
	err := overconn.Serve(ctx, ss, ss.countCalls(ss.server.handler), opts)
	if err != nil && !errors.Is(err, httpwire.ErrShutdown) && !errors.Is(err, errIdle) {
		opts.Logger.Warn("a session over HTTP+SSE failed", "err", err)
	}
}

// Account returns where the responses of a batch count until the batch is written.
func (ss *session) Account() quota.Account { return ss.account }

// headerTap returns a tap that shows received messages with the header fields of their POST.
func (ss *session) headerTap(tap transport.Tap) transport.Tap {
	if tap == nil {
		return nil
	}
	return func(f transport.Frame) {
		if f.Kind == transport.Sent {
			tap(f)
			return
		}
		frames.Show(tap, f.Kind, f.Data, ss.last.header)
	}
}

// deliverMessage passes a message to the reading loop. It reports false if the session ends first.
func (ss *session) deliverMessage(ctx context.Context, m message) bool {
	select {
	case ss.incoming <- m:
		return true
	case <-ss.readEnd:
	case <-ss.events.Done():
	case <-ctx.Done():
	}
	return false
}

// Read implements [transport.Conn].
func (ss *session) Read() ([]byte, error) {
	select {
	case m := <-ss.incoming:
		ss.last = m
		return m.frame, nil
	case <-ss.readEnd:
		return nil, io.EOF
	case <-ss.events.Done():
	}
	select {
	case <-ss.readEnd: // closing readEnd also ends the stream
		return nil, io.EOF
	default:
		return nil, fmt.Errorf("%w: %w", mcp.ErrConnection, ss.events.Err())
	}
}

// messageEvent is the event name for messages. Events without a name have the same meaning, but not
// every client knows that.
const messageEvent = "message"

// Header implements [transport.HeaderConn].
func (ss *session) Header() map[string][]string { return ss.last.header }

// FramePrincipal returns the principal of the message that Read returned last: it is the session's,
// but a newer token may have other scopes.
func (ss *session) FramePrincipal() mcp.Principal { return ss.last.principal }

// Write implements [transport.Conn].
func (ss *session) Write(frame []byte) error {
	err := ss.events.Send(eventstream.Event{Name: messageEvent, Data: frame})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, eventstream.ErrClosed):
		return mcp.ErrClosed
	case ss.events.Err() == nil: // a limit refuses the frame
		return err
	}
	return fmt.Errorf("%w: %w", mcp.ErrConnection, err)
}

// TryWrite implements [transport.TryWriter].
func (ss *session) TryWrite(frame []byte) bool {
	return ss.events.TrySend(eventstream.Event{Name: messageEvent, Data: frame})
}

// Close implements [transport.Conn]. Frames written before are sent first.
func (ss *session) Close() error {
	ss.endOnce.Do(func() { close(ss.readEnd) })
	return ss.events.Close()
}

// hangUp ends the session at once.
func (ss *session) hangUp(reason error) {
	ss.endOnce.Do(func() { close(ss.readEnd) })
	ss.events.CutOff(reason)
}
