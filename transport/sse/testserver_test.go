package sse_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

var quiet = slog.New(slog.DiscardHandler)

// testServer is a server with a tool for each feature of the transport.
type testServer struct {
	*server.Server
	entered chan struct{} // "wait" is running
	release chan struct{}
	ended   chan error // the cause of the end of the context of "wait"
}

type textIn struct {
	Text string `json:"text"`
}

func newTestServer() *testServer {
	w := &testServer{server.New("test-server", "1", &server.Options{Logger: quiet}), make(chan struct{}, 8), make(chan struct{}), make(chan error, 8)}
	server.Tool(w.Server, "echo", "", func(_ context.Context, in textIn) (string, error) { return in.Text, nil })
	server.Tool(w.Server, "big", "", func(_ context.Context, in struct {
		Size int `json:"size"`
	}) (string, error) {
		return strings.Repeat("x", in.Size), nil
	})
	server.Tool(w.Server, "progress", "", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			server.Progress(ctx, float64(i+1), 3, "")
			time.Sleep(200 * time.Millisecond) // the server limits the rate of progress
		}
		return "done", nil
	})
	server.Tool(w.Server, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := server.Ask[struct {
			Name string `json:"name"`
		}](ctx, "who", "Who?")
		return "hello " + answer.Name, err
	})
	server.Tool(w.Server, "wait", "", func(ctx context.Context, _ struct{}) (string, error) {
		w.entered <- struct{}{}
		select {
		case <-w.release:
			return "released", nil
		case <-ctx.Done():
			w.ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}
	})
	return w
}

// serve serves the test server at /sse of an HTTP server.
func serve(t testing.TB, h mcp.Handler, opts streamable.Options) (*sse.Server, *httptest.Server) {
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	if opts.Tap == nil {
		// Messages without a session are legacy in this transport.
		opts.Tap = mcptest.ServerTap(t, mcptest.SentOnly(mcp.Revision20241105))
	}
	s := sse.Handler(h, &opts)
	mux := http.NewServeMux()
	mux.Handle("/sse", s)
	web := listen(t, mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, web
}

// listen serves h over HTTP/1.1.
func listen(t testing.TB, h http.Handler) *httptest.Server {
	web := httptest.NewUnstartedServer(h)
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	t.Cleanup(web.Close)
	return web
}

// inbound answers elicitations with a name and records notifications.
type inbound struct {
	notes chan mcp.Notification
	down  chan error
}

func newInbound() *inbound { return &inbound{make(chan mcp.Notification, 16), make(chan error, 1)} }

func (in *inbound) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodElicit {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return &mcp.Result{Value: &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"name":"Ada"}`)}}, nil
}

func (in *inbound) Notify(n mcp.Notification) { in.notes <- n }
func (in *inbound) Down(err error)            { in.down <- err }

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
	t.Cleanup(cancel)
	return ctx
}

var elicits = mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}

// dial connects until the test ends.
func dial(t testing.TB, u sse.URL, in mcp.Inbound, opts transport.ClientOptions) mcp.Transport {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	if opts.Tap == nil {
		opts.Tap = mcptest.ClientTap(t, mcptest.SentOnly())
	}
	tr, err := u.Dial(within(t), in, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return tr
}

func call(ctx context.Context, tr mcp.Transport, tool, arguments string, notify func(mcp.Notification)) (string, error) {
	res, err := tr.RoundTrip(ctx, &mcp.Request{
		Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments), Notify: notify,
	})
	if err != nil {
		return "", err
	}
	var out mcp.CallToolResult
	if err := mcp.Decode(res.Raw, &out); err != nil {
		return "", err
	}
	if len(out.Content) == 0 {
		return "", nil
	}
	return out.Content[0].Text, nil
}

// peer is a raw client.
type peer struct {
	t        testing.TB
	web      *httptest.Server
	events   *eventstream.Reader
	close    func()
	endpoint string // absolute
	told     string
}

func open(t testing.TB, web *httptest.Server, path string) *peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, web: web, events: eventstream.NewReader(resp.Body, 0), close: func() { cancel(); resp.Body.Close() }}
	t.Cleanup(p.close)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store, no-transform" {
		t.Fatal(resp.Status, resp.Header)
	}
	e, err := p.events.Next()
	if err != nil || e.Name != "endpoint" {
		t.Fatal(e, err)
	}
	p.told = string(e.Data)
	to, err := r.URL.Parse(p.told)
	if err != nil {
		t.Fatal(err)
	}
	p.endpoint = to.String()
	return p
}

// post returns the status and, if it is an error, the body.
func (p *peer) post(body string) string {
	p.t.Helper()
	return post(p.t, p.endpoint, "application/json", body)
}

func post(t testing.TB, url, contentType, body string) string {
	t.Helper()
	resp, err := http.DefaultClient.Post(url, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(resp.Body)
	http.DefaultClient.CloseIdleConnections()
	if retry := resp.Header.Get("Retry-After"); retry != "" {
		said = append(said, " after "+retry...)
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", string(said)))
}

// next returns the next message of the stream.
func (p *peer) next() string {
	p.t.Helper()
	e, err := p.events.Next()
	if err != nil || e.Name != "" {
		p.t.Fatal(e, err)
	}
	return string(e.Data)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"sampling":{}},"clientInfo":{"name":"hand","version":"1"}}}`

func (p *peer) initialize() {
	p.t.Helper()
	if got := p.post(initialize); got != "202" {
		p.t.Fatal(got)
	}
	answer := p.next()
	if v := rawjson.Lookup(rawjson.Lookup([]byte(answer), "result"), "protocolVersion"); string(v) != `"2024-11-05"` {
		p.t.Fatal(answer)
	}
	if got := p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); got != "202" {
		p.t.Fatal(got)
	}
}

func toolCall(id int, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, arguments)
}
