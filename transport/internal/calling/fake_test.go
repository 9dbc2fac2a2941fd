package calling_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

var quiet = slog.New(slog.DiscardHandler)

// fake is a scripted server. It records each message and calls answer with it.
type fake struct {
	near, far transport.Conn
	answer    func(f *fake, m jsonrpc.Message)
	ended     chan struct{}

	mu  sync.Mutex
	got []string
}

func newFake(t testing.TB, answer func(f *fake, m jsonrpc.Message)) *fake {
	f := &fake{answer: answer, ended: make(chan struct{})}
	f.near, f.far = memory.Pipe()
	go f.read()
	return f
}

func (f *fake) read() {
	defer close(f.ended)
	for {
		frame, err := f.far.Read()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.got = append(f.got, string(frame))
		f.mu.Unlock()
		if m, err := jsonrpc.Parse(frame, nil); err == nil {
			f.answer(f, m)
		}
	}
}

// send sends a frame, whole.
func (f *fake) send(format string, args ...any) { _ = f.far.Write(fmt.Appendf(nil, format, args...)) }

// reply answers a request with a result or an error, written as the member that it is.
func (f *fake) reply(m jsonrpc.Message, member string) {
	f.send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, member)
}

// received returns the frames that came so far.
func (f *fake) received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.got...)
}

// methods lists the methods of the received messages, and whole frames without a method.
func (f *fake) methods() string {
	var methods []string
	for _, frame := range f.received() {
		m, err := jsonrpc.Parse([]byte(frame), nil)
		if err != nil || m.Method == "" {
			methods = append(methods, frame)
			continue
		}
		methods = append(methods, m.Method)
	}
	return strings.Join(methods, " ")
}

// recorder is an Inbound that remembers.
type recorder struct {
	answer func(ctx context.Context, req *mcp.Request) (*mcp.Result, error)

	mu    sync.Mutex
	notes []string
	downs []error
}

func (r *recorder) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if r.answer == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return r.answer(ctx, req)
}

func (r *recorder) Notify(n mcp.Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, n.Method+string(n.Params))
}

func (r *recorder) Down(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.downs = append(r.downs, err)
}

func (r *recorder) noted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.notes, " ")
}

func (r *recorder) down() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.downs...)
}

const discovered = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{}}`

func initialized(r mcp.Revision) string {
	return `"result":{"protocolVersion":"` + string(r) + `","capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true},"prompts":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"i"}`
}

// connected is a transport to a fake server of the revision, which answers what the handshake needs
// and gives the rest to answer.
func connected(t testing.TB, r mcp.Revision, in *recorder, opts transport.ClientOptions, answer func(f *fake, m jsonrpc.Message)) (mcp.Transport, *fake) {
	t.Helper()
	f := newFake(t, func(f *fake, m jsonrpc.Message) {
		switch {
		case m.Method == mcp.MethodDiscover && r.Modern():
			f.reply(m, discovered)
		case m.Method == mcpwire.MethodInitialize:
			f.reply(m, initialized(r))
		case m.Method == mcpwire.NotificationInitialized:
		case answer != nil:
			answer(f, m)
		}
	})
	if in == nil {
		in = &recorder{}
	}
	opts.Revision, opts.Logger = r, quiet
	if opts.Tap == nil {
		opts.Tap = mcptest.ClientTap(t, mcptest.SentOnly())
	}
	c, err := overconn.Connect(context.Background(), f.near, in, "", opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

// after answers later than now; the timer is the bubble's.
func after(d time.Duration, do func()) { time.AfterFunc(d, do) }

func eachRevision(t *testing.T, test func(t *testing.T, r mcp.Revision)) {
	for _, r := range mcp.Revisions() {
		t.Run(string(r), func(t *testing.T) { test(t, r) })
	}
}

// called is the outcome of a call: its result or its error.
type called struct {
	res *mcp.Response
	err error
}

func goCall(c mcp.Transport, ctx context.Context, req *mcp.Request) <-chan called {
	done := make(chan called, 1)
	go func() {
		res, err := c.RoundTrip(ctx, req)
		done <- called{res, err}
	}()
	return done
}

func callTool(name string) *mcp.Request {
	return &mcp.Request{Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":%q}`, name)}
}
