package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
)

// TestMain runs the tests and fails if a goroutine of a client is left. With DOWEL_TEST_SILENT it
// is a server on stdio that never answers.
func TestMain(m *testing.M) {
	if os.Getenv("DOWEL_TEST_SILENT") != "" {
		fmt.Fprintln(os.Stderr, "a silent server")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	code := m.Run()
	for deadline := time.Now().Add(time.Minute); code == 0; time.Sleep(10 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		_, others, _ := strings.Cut(string(stacks), "\n\n")
		if !strings.Contains(others, "dowel-mcp/dowel") {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", others)
			code = 1
		}
	}
	os.Exit(code)
}

// handlers is a server: a function for each method. Without a handler for server/discover it gives
// a default answer.
type handlers map[string]func(ctx context.Context, req *mcp.Request) (*mcp.Result, error)

func (h handlers) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if f := h[req.Method]; f != nil {
		return f(ctx, req)
	}
	if req.Method == mcp.MethodDiscover {
		return &mcp.Result{Raw: json.RawMessage(discovery)}, nil
	}
	return nil, mcp.MethodNotFound(req.Method)
}

const discovery = `{"supportedVersions":["2026-07-28","2025-11-25"],
	"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{},"completions":{},"logging":{}},
	"instructions":"be kind","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}`

func raw(s string) *mcp.Result { return &mcp.Result{Raw: json.RawMessage(s)} }

// returns makes a handler that always gives this result.
func returns(s string) func(context.Context, *mcp.Request) (*mcp.Result, error) {
	return func(context.Context, *mcp.Request) (*mcp.Result, error) { return raw(s), nil }
}

// connect dials h through the memory transport and closes the client when the test ends. Only what
// the client sends is checked: the handlers of these tests leave out what they do not need.
func connect(t testing.TB, h mcp.Handler, opts ...client.Options) *client.Client {
	t.Helper()
	var o client.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Wire.Tap == nil {
		o.Wire.Tap = mcptest.ClientTap(t, mcptest.SentOnly())
	}
	c, err := client.Dial(context.Background(), h, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// eras runs a test in both eras.
func eras(t *testing.T, f func(t *testing.T, revision mcp.Revision)) {
	for _, r := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		t.Run(string(r), func(t *testing.T) { f(t, r) })
	}
}

// param returns a raw member of a request's params.
func param(req *mcp.Request, name string) string { return string(rawjson.Lookup(req.Params, name)) }

// fakeDialer connects a client to a handler in the same process, without a wire, and can lose the
// connection.
type fakeDialer struct {
	name    string
	handler mcp.Handler
	// fails returns the error of the nth dial, counted from 0. A nil error or a nil function lets
	// it succeed.
	fails    func(n int) error
	revision mcp.Revision

	mu    sync.Mutex
	dials int
	live  *fakeTransport
}

func (l *fakeDialer) Endpoint() string { return "fake:" + l.name }

func (l *fakeDialer) String() string { return "fake server " + l.name }

func (l *fakeDialer) Dial(_ context.Context, in mcp.Inbound, _ transport.ClientOptions) (mcp.Transport, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.dials
	l.dials++
	if l.fails != nil {
		if err := l.fails(n); err != nil {
			return nil, err
		}
	}
	w := &fakeTransport{dialer: l, in: in}
	w.life, w.end = context.WithCancelCause(context.Background())
	l.live = w
	return w, nil
}

func (l *fakeDialer) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dials
}

// loseConnection ends the current connection, as the end of a server process does.
func (l *fakeDialer) loseConnection(why string) {
	l.mu.Lock()
	w := l.live
	l.mu.Unlock()
	err := fmt.Errorf("%w: %s", mcp.ErrConnection, why)
	w.end(err)
	w.in.Down(err)
}

func (l *fakeDialer) inbound() mcp.Inbound {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.live.in
}

type fakeTransport struct {
	dialer *fakeDialer
	in     mcp.Inbound
	life   context.Context
	end    context.CancelCauseFunc
}

func (w *fakeTransport) RoundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	if w.life.Err() != nil {
		return nil, context.Cause(w.life)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(w.life, func() { cancel(context.Cause(w.life)) })()
	served := *req
	served.Peer = peer{req}
	res, err := w.dialer.handler.ServeMCP(ctx, &served)
	if w.life.Err() != nil {
		return nil, context.Cause(w.life)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	resp := &mcp.Response{Type: res.Type, Raw: res.Raw, Cache: res.Cache, Revision: w.dialer.revision}
	if resp.Type == "" {
		resp.Type = mcp.ResultComplete
	}
	if resp.Revision == "" {
		resp.Revision = mcp.LatestRevision
	}
	return resp, nil
}

func (w *fakeTransport) Close() error {
	w.end(mcp.ErrClosed)
	return nil
}

type peer struct{ req *mcp.Request }

func (p peer) Notify(_ context.Context, n mcp.Notification) error {
	if p.req.Notify != nil {
		p.req.Notify(n)
	}
	return nil
}

func (p peer) Change(_ context.Context, c mcp.Notification) error {
	p.req.Notify(mcp.Notification{Method: c.Method, Params: c.Params})
	return nil
}

// tools is the handler of a server with tools/call alone.
func tools(f func(ctx context.Context, req *mcp.Request) (*mcp.Result, error)) handlers {
	return handlers{mcp.MethodCallTool: f}
}

func mustBe(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("got error %v, want %v", err, target)
	}
}
