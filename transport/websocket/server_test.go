package websocket_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// status returns the status of a request, and its body if the status is an error. fields are pairs
// of a header field and its value; they follow the fields of an upgrade.
func status(t *testing.T, url, method string, fields ...string) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), method, "http"+strings.TrimPrefix(url, "ws"), nil)
	if err != nil {
		t.Fatal(err)
	}
	fields = append([]string{
		"Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==",
		"Sec-WebSocket-Protocol", "mcp",
	}, fields...)
	for i := 0; i < len(fields); i += 2 {
		if r.Header.Set(fields[i], fields[i+1]); fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, ""
	}
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newTestServer(), websocket.Options{})
	for _, tt := range []struct {
		method string
		fields []string
		code   int
		says   string
	}{
		{"GET", nil, 101, ""},
		{"GET", []string{"Sec-WebSocket-Protocol", "graphql-ws, mcp"}, 101, ""},
		{"GET", []string{"Upgrade", "WebSocket"}, 101, ""},
		{"POST", nil, 405, "GET opens a WebSocket connection"},
		{"GET", []string{"Upgrade", "h2c"}, 426, `takes WebSocket connections with the subprotocol \"mcp\"`},
		{"GET", []string{"Connection", "keep-alive"}, 426, `takes WebSocket connections with the subprotocol \"mcp\"`},
		{"GET", []string{"Sec-WebSocket-Protocol", ""}, 400, `must offer the WebSocket subprotocol \"mcp\"`},
		{"GET", []string{"Sec-WebSocket-Protocol", "graphql-ws"}, 400, `must offer the WebSocket subprotocol \"mcp\"`},
		{"GET", []string{"Sec-WebSocket-Version", "8"}, 400, "13"},
		{"GET", []string{"Sec-WebSocket-Key", "short"}, 400, "Sec-WebSocket-Key"},
	} {
		if code, body := status(t, url, tt.method, tt.fields...); code != tt.code || !strings.Contains(body, tt.says) {
			t.Errorf("%s %q: %d %s, want %d %s", tt.method, tt.fields, code, body, tt.code, tt.says)
		}
	}
}

// The rules for hosts and pages are the same as for Streamable HTTP.
func TestGuard(t *testing.T) {
	t.Parallel()
	allowing := streamable.Guard{Hosts: []string{"mcp.example.com"}, AllowOrigin: func(o string) bool { return o == "https://app.example.com" }}
	for _, tt := range []struct {
		guard  streamable.Guard
		fields []string
		code   int
	}{
		{streamable.Guard{}, []string{"Host", "evil.example.com"}, 403},
		{streamable.Guard{}, []string{"Host", "localhost:1234"}, 101},
		{streamable.Guard{}, []string{"Origin", "https://evil.example.com"}, 403},
		{streamable.Guard{}, []string{"Origin", "null"}, 403},
		{streamable.Guard{}, []string{"Host", "localhost", "Origin", "http://localhost"}, 101},
		{allowing, []string{"Host", "mcp.example.com"}, 101},
		{allowing, []string{"Host", "localhost"}, 403},
		{allowing, []string{"Host", "mcp.example.com", "Origin", "https://app.example.com"}, 101},
		{allowing, []string{"Host", "mcp.example.com", "Origin", "https://other.example.com"}, 403},
		{streamable.Guard{Off: true}, []string{"Host", "evil.example.com", "Origin", "https://evil.example.com"}, 101},
	} {
		_, url := serve(t, newTestServer(), websocket.Options{Guard: tt.guard})
		if code, body := status(t, url, "GET", tt.fields...); code != tt.code {
			t.Errorf("%q: %d %s, want %d", tt.fields, code, body, tt.code)
		}
	}
}

// Requests have the principal and the header of the request that has opened their connection.
func TestPrincipalAndHeader(t *testing.T) {
	t.Parallel()
	s := server.New("who", "1", nil)
	seen := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return s.ServeMCP(ctx, req)
		}
		text := req.Principal.ID + " " + strings.Join(req.Header["X-Team"], ",") + " " + strings.Join(req.Header["Mcp-Param-Text"], ",") + " " + req.Header["Mcp-Session-Id"][0]
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{{Type: "text", Text: text}}}}, nil
	})
	_, url := serve(t, seen, websocket.Options{Principal: func(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get("X-User")} }})
	sessions := map[string]bool{}
	for range 2 {
		c := raw(t, url, &ws.DialOptions{Subprotocols: []string{"mcp"}, HTTPHeader: http.Header{
			"X-User": {"ada"}, "X-Team": {"blue"}, "Mcp-Session-Id": {"chosen"}, "Mcp-Param-Text": {"x"},
		}})
		exchange(t, c, initialize)
		var answer struct {
			Result mcp.CallToolResult `json:"result"`
		}
		if err := json.Unmarshal([]byte(exchange(t, c, toolCall(2, "who", `{}`))), &answer); err != nil {
			t.Fatal(err)
		}
		id, ok := strings.CutPrefix(answer.Result.Content[0].Text, "ada blue  ")
		if !ok || id == "chosen" || sessions[id] {
			t.Errorf("%q", answer.Result.Content[0].Text)
		}
		sessions[id] = true
	}
}

func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	_, url := serve(t, newTestServer(), websocket.Options{ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(transport.Limits{Streams: 2})}})
	first := raw(t, url, nil)
	raw(t, url, nil)
	if code, body := status(t, url, "GET"); code != 503 || !strings.Contains(body, "2 streams are open, which is the limit") {
		t.Error(code, body)
	}
	_ = first.Close(ws.StatusNormalClosure, "")
	for { // the server needs a moment to notice
		if code, _ := status(t, url, "GET"); code == 101 {
			return
		}
	}
}

// A response writer that cannot be hijacked answers with an error instead of a panic.
func TestNoHijacker(t *testing.T) {
	t.Parallel()
	s := websocket.Handler(newTestServer(), &websocket.Options{ServerOptions: transport.ServerOptions{Logger: quiet}})
	url := wsURL(listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})))
	if code, _ := status(t, url, "GET"); code != 501 {
		t.Error(code)
	}
}
