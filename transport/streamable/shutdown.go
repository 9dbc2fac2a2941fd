package streamable

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

const retryShutdown = 5 * time.Second

// defaultAnswerGrace is how long the calls that Shutdown has cancelled have for their answers.
// After that their sessions end, and an answer that is an event stream is lost.
const defaultAnswerGrace = 500 * time.Millisecond

// beginRequest counts a request that Shutdown waits for. It reports false after Shutdown was
// called.
func (s *Server) beginRequest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.requests.Add(1)
	return true
}

// Shutdown refuses further requests with status 503, ends subscriptions with a result, ends the
// streams of sessions and waits for the calls in flight. Their clients can still answer questions.
// Then it ends the sessions. If ctx ends first, the calls are cancelled and have half a second to
// return an error, which their clients get. Then Shutdown ends the sessions and returns the cause
// of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	grace := 2 * time.Second // for calls that continue after their client has disconnected
	for _, end := range s.stopAccepting() {
		(*end)()
	}
	done := make(chan struct{})
	go func() { defer close(done); s.requests.Wait() }()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err, grace = context.Cause(ctx), 250*time.Millisecond
		s.cancelCalls()
		answered := time.NewTimer(s.answerGrace)
		defer answered.Stop()
		select {
		case <-done:
		case <-answered.C:
		}
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	s.sessions.closeAll(limit)
	s.leaveReplicas()
	select {
	case <-done:
	case <-limit.Done():
	}
	s.workers.close()
	return err
}

var errCallCutOff = mcp.Errorf(jsonrpc.CodeInternal, "the server is shutting down, and the call was not done in time")

// cancelCalls cancels the calls of both eras. They answer with errCallCutOff.
func (s *Server) cancelCalls() {
	s.mu.Lock()
	for out := range s.modernCalls {
		out.ctx.Cancel(errCallCutOff)
	}
	s.mu.Unlock()
	s.sessions.forEach(func(ss *session) { ss.edge.Cancel(errCallCutOff) })
}

// serveDuringShutdown serves the messages that calls in flight wait for, and refuses all others.
func (s *Server) serveDuringShutdown(w http.ResponseWriter, r *http.Request) {
	var id jsonrpc.ID
	if r.Method == http.MethodPost && r.Header.Get(mcpwire.HeaderSessionID) != "" && !s.namesModernRevision(r) {
		out := s.readMessage(w, r)
		if out == nil {
			return
		}
		if out.in.Message.IsRequest() {
			id = out.in.ID
		} else if !s.isModern(r, out.in.Params) {
			s.postLegacy(w, r, out.in.Message, out.accept)
			return
		}
	}
	httpwire.RefuseBusy(w, id, httpwire.ErrShutdown.Error(), retryShutdown)
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// stopAccepting makes the server refuse further requests. It returns the hooks that end open
// streams.
func (s *Server) stopAccepting() []*func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return slices.Collect(maps.Keys(s.shutdownHooks))
}

// onShutdown registers a hook that Shutdown calls, or calls it at once after Shutdown. The returned
// function removes the hook.
func (s *Server) onShutdown(end func()) (forget func()) {
	key := &end
	s.mu.Lock()
	s.shutdownHooks[key] = struct{}{}
	closed := s.closed
	s.mu.Unlock()
	if closed {
		end()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.shutdownHooks, key)
	}
}
