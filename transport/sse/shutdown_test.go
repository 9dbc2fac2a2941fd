package sse_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// When the server ends, the calls in flight must be answered before the client's connection ends.
func TestServerShutsDown(t *testing.T) {
	w := newTestServer()
	s, web := serve(t, w, streamable.Options{ServerOptions: transport.ServerOptions{DrainTimeout: polltest.Limit}})
	in := newInbound()
	tr := dial(t, sse.URL{URL: web.URL}, in, transport.ClientOptions{})
	done := make(chan error)
	go func() {
		<-w.entered
		time.AfterFunc(100*time.Millisecond, func() { close(w.release) })
		done <- s.Shutdown(within(t))
	}()
	if got, err := call(within(t), tr, "wait", `{}`, nil); err != nil || got != "released" {
		t.Error(got, err)
	}
	if err := <-in.down; !strings.Contains(err.Error(), "has ended the stream") {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Shutdown must accept the answer to a question of a call in flight, so that the call can end.
func TestShutdownWaitsForAnswers(t *testing.T) {
	w := newTestServer()
	s, web := serve(t, w, streamable.Options{ServerOptions: transport.ServerOptions{DrainTimeout: polltest.Limit}})
	in := &slowInbound{newInbound(), make(chan struct{}), make(chan struct{})}
	tr := dial(t, sse.URL{URL: web.URL}, in, transport.ClientOptions{Capabilities: elicits})
	done := make(chan error)
	go func() {
		<-in.asked
		time.AfterFunc(200*time.Millisecond, func() { close(in.answer) })
		done <- s.Shutdown(within(t))
	}()
	if got, err := call(within(t), tr, "ask", `{}`, nil); err != nil || got != "hello Ada" {
		t.Error(got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// slowInbound answers when the test lets it.
type slowInbound struct {
	*inbound
	asked, answer chan struct{}
}

func (in *slowInbound) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	close(in.asked)
	<-in.answer
	return in.inbound.ServeMCP(ctx, req)
}
