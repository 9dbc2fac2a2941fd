package streamable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type message struct {
	Message string `json:"message"`
}

type routed struct {
	Region string `json:"region"`
	Level  int    `json:"level,omitempty"`
}

type person struct {
	Name string `json:"name"`
}

// testServer returns a server with a tool for each feature of a transport. The tool "wait" waits
// for gate.
func testServer(gate chan struct{}) *server.Server {
	s := server.New("test-server", "1", &server.Options{Logger: slog.New(slog.DiscardHandler), ListInterval: -1})
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in message) (string, error) { return in.Message, nil })
	server.Tool(s, "progress", "Reports.", func(ctx context.Context, in message) (string, error) {
		for i := range 3 {
			server.Progress(ctx, float64(i), 3, in.Message)
		}
		return "done", nil
	})
	server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		who, err := server.Ask[person](ctx, "who", "Who are you?")
		return "hello " + who.Name, err
	})
	server.Tool(s, "wait", "Waits to be let go.", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-gate:
			return "let go", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	server.Tool(s, "cut", "Ends the connection and goes on.", func(ctx context.Context, _ struct{}) (string, error) {
		server.Progress(ctx, 1, 2, "before")
		if !server.Disconnect(ctx) {
			return "not cut", nil
		}
		server.Log(ctx).Info("after")
		return "cut", nil
	})
	server.RawTool(s, mcp.Tool{Name: "route", InputSchema: json.RawMessage(`{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer","x-mcp-header":"Level"}}}`)},
		func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(string(arguments))}}, nil
		})
	server.Tool(s, "grow", "Adds a tool.", func(context.Context, struct{}) (string, error) {
		server.Tool(s, "grown", "New.", func(context.Context, struct{}) (string, error) { return "", nil })
		return "", nil
	})
	return s
}

// serve serves the handler at /mcp until the test ends. Its answers are checked against the schema.
func serve(t testing.TB, h mcp.Handler, opts ...streamable.Options) (*streamable.Server, *httptest.Server) {
	t.Helper()
	var o *streamable.Options
	if len(opts) > 0 {
		o = &opts[0]
	}
	endpoint := streamable.Handler(h, o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", checked(t, endpoint))
	web := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
		defer cancel()
		if err := endpoint.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	return endpoint, web
}

// dial connects to the server in a revision. All frames are checked against the revision's schema.
func dial(t testing.TB, url string, revision mcp.Revision, opts client.Options) *client.Client {
	t.Helper()
	own := opts.HTTP.Client
	if own == nil {
		own = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	}
	opts.Wire.Revision, opts.HTTP.Client, opts.Wire.Verdicts = revision, own, new(transport.Verdicts)
	if opts.Wire.Tap == nil {
		opts.Wire.Tap = mcptest.ClientTap(t)
	}
	c, err := client.Dial(t.Context(), url, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); own.CloseIdleConnections() })
	return c
}

// answer is the response to a raw request.
type answer struct {
	status int
	header http.Header
	body   string
}

// send makes a raw request.
func send(t testing.TB, method, url, body string, fields ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i < len(fields); i += 2 {
		switch name, value := fields[i], fields[i+1]; {
		case name == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(name)
		default:
			r.Header[name] = append(r.Header[name], value) // as it is spelt
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return answer{resp.StatusCode, resp.Header, string(got)}
}

// code returns the code of the error in a body, or 0.
func code(t testing.TB, body string) int {
	t.Helper()
	var m struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if body == "" {
		return 0
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Errorf("the body is not JSON: %q", body)
	}
	return m.Error.Code
}

// openGate lets one call of the tool "wait" return. It fails the test if no call waits within
// polltest.Limit.
func openGate(t testing.TB, gate chan<- struct{}) {
	t.Helper()
	select {
	case gate <- struct{}{}:
	case <-t.Context().Done():
	case <-time.After(polltest.Limit):
		t.Error("no call waits at the gate")
	}
}
