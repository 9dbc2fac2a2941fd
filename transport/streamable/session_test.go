package streamable_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func initializeBody(r mcp.Revision, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{%s},"clientInfo":{"name":"raw","version":"1"}}}`, r, more)
}

// open opens a session and returns its id.
func open(t testing.TB, url string, r mcp.Revision, fields ...string) string {
	t.Helper()
	got := send(t, "POST", url, initializeBody(r, `"elicitation":{}`), fields...)
	id := got.header.Get("Mcp-Session-Id")
	if got.status != 200 || id == "" || len(id) > 1024 {
		t.Fatalf("initialize: %d %q %s", got.status, id, got.body)
	}
	for _, b := range []byte(id) {
		if b < 0x21 || b > 0x7e {
			t.Fatalf("the session id holds %q", b)
		}
	}
	return id
}

const pingBody = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

func inSession(id string, r mcp.Revision) []string {
	return []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", string(r)}
}

func TestSession(t *testing.T) {
	_, web := serve(t, testServer(nil))
	url := web.URL + "/mcp"
	id := open(t, url, mcp.Revision20251125)
	in := inSession(id, mcp.Revision20251125)
	batch := `[` + pingBody + `,{"jsonrpc":"2.0","method":"notifications/x"}]`
	old := inSession(open(t, url, mcp.Revision20250326), mcp.Revision20250326)
	for _, test := range []struct {
		name, body string
		fields     []string
		status     int
		code       int
	}{
		{"ping", pingBody, in, 200, 0},
		{"ping without a version", pingBody, in[:2], 200, 0},
		{"ping with an unknown version", pingBody, []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "1999-01-01"}, 400, -32600},
		{"ping without a session", pingBody, in[2:], 400, -32600},
		{"ping with two sessions", pingBody, append([]string{"Mcp-Session-Id", id}, in...), 400, -32600},
		{"a forged session", pingBody, inSession(id[:len(id)-2]+"xx", mcp.Revision20251125), 404, -32600},
		{"initialized", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in, 202, 0},
		{"initialize again", initializeBody(mcp.Revision20251125, ""), in, 200, 0},
		{"a response to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, in, 400, -32600},
		{"a batch where there is none", batch, in, 400, -32600},
		{"a batch", batch, old, 200, 0},
		{"a batch of notifications", `[{"jsonrpc":"2.0","method":"notifications/x"}]`, old, 202, 0},
		{"an empty batch", `[]`, old, 400, -32600},
		{"a batch of too many", "[" + strings.Repeat(pingBody+",", 1000) + pingBody + "]", old, 400, -32600},
		{"a batch with initialize", `[` + initializeBody(mcp.Revision20250326, "") + `]`, old, 200, 0},
		{"an unknown method", `{"jsonrpc":"2.0","id":3,"method":"a/b"}`, in, 200, -32601},
		{"a modern method", `{"jsonrpc":"2.0","id":3,"method":"server/discover"}`, in, 200, -32601},
		{"a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, in, 400, -32600},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := send(t, "POST", url, test.body, test.fields...)
			if got.status != test.status || !strings.HasPrefix(got.body, "[") && code(t, got.body) != test.code {
				t.Errorf("got %d, want %d, %d: %s", got.status, test.status, test.code, got.body)
			}
		})
	}
	if got := send(t, "DELETE", url, "", in...); got.status != 204 {
		t.Errorf("DELETE: %d %s", got.status, got.body)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if got := send(t, method, url, pingBody, append(in, "Accept", "text/event-stream")...); got.status != 404 {
			t.Errorf("%s after DELETE: %d %s", method, got.status, got.body)
		}
	}
}

// A session must serve only the principal that opened it.
func TestSessionOfAnother(t *testing.T) {
	_, web := serve(t, testServer(nil), streamable.Options{Principal: func(r *http.Request) mcp.Principal {
		return mcp.Principal{ID: r.Header.Get("X-User")}
	}})
	id := open(t, web.URL+"/mcp", mcp.Revision20251125, "X-User", "ada")
	for user, status := range map[string]int{"ada": 200, "bob": 404, "": 404} {
		fields := append(inSession(id, mcp.Revision20251125), "X-User", user)
		if user == "" {
			fields = fields[:4]
		}
		if got := send(t, "POST", web.URL+"/mcp", pingBody, fields...); got.status != status {
			t.Errorf("%q: %d, want %d", user, got.status, status)
		}
	}
}

// Every replica with the key must serve a session. Replicas with a common store must agree on its
// end.
func TestReplicas(t *testing.T) {
	keys := new(mcp.Keys)
	store := &sharedSessions{}
	replica := func() string {
		s := server.New("replica", "1", &server.Options{Keys: keys})
		server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			_, err := server.Ask[person](ctx, "who", "Who?")
			return "", err
		})
		_, web := serve(t, s, streamable.Options{Sessions: streamable.SessionOptions{Store: store}})
		return web.URL + "/mcp"
	}
	one, two := replica(), replica()
	in := inSession(open(t, one, mcp.Revision20250618), mcp.Revision20250618)
	level := `{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"error"}}`
	for _, step := range []struct{ url, body string }{{two, pingBody}, {one, level}, {two, listOf("tools/list")}, {one, listOf("tools/list")}} {
		if got := send(t, "POST", step.url, step.body, in...); got.status != 200 || code(t, got.body) != 0 {
			t.Errorf("%s: %d %s", step.body, got.status, got.body)
		}
	}
	if got := send(t, "DELETE", two, "", in...); got.status != 204 {
		t.Fatalf("DELETE: %d", got.status)
	}
	three := replica()
	if got := send(t, "POST", three, pingBody, in...); got.status != 404 {
		t.Errorf("a new replica continues an ended session: %d", got.status)
	}
	_, foreign := serve(t, testServer(nil))
	if got := send(t, "POST", foreign.URL+"/mcp", pingBody, in...); got.status != 404 {
		t.Errorf("a server with another key: %d", got.status)
	}
}

func listOf(method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":4,"method":%q}`, method)
}

func TestSessionLimits(t *testing.T) {
	var url string
	var first []string
	polltest.UntilNil(t, func() error { // a stream's first bytes may arrive before it counts as open
		limits := transport.ServerOptions{Quota: transport.NewQuota(transport.Limits{Sessions: 2}), Principal: mcp.Principal{ID: "one"}}
		_, web := serve(t, testServer(nil), streamable.Options{ServerOptions: limits})
		url = web.URL + "/mcp"
		first = inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
		second := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
		for _, in := range [][]string{first, second} { // a session with an open stream is in use
			lines, _ := stream(t, url, in...)
			until(t, lines, ":")
		}
		got := send(t, "POST", url, initializeBody(mcp.Revision20251125, ""))
		if got.status != 503 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "(sessions)") {
			return fmt.Errorf("the third session: %d %v %s", got.status, got.header, got.body)
		}
		return nil
	})
	send(t, "DELETE", url, "", first...)
	open(t, url, mcp.Revision20251125)
	third := open(t, url, mcp.Revision20251125) // takes the place of the one before
	if got := send(t, "POST", url, pingBody, inSession(third, mcp.Revision20251125)...); got.status != 200 {
		t.Errorf("the new session: %d %s", got.status, got.body)
	}
}

// request serves a POST without a network, for tests with a fake clock.
func request(endpoint http.Handler, body string, fields ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	endpoint.ServeHTTP(w, r)
	return w
}

// openAt opens a session without a network and returns its header fields.
func openAt(endpoint http.Handler) []string {
	id := request(endpoint, initializeBody(mcp.Revision20251125, "")).Header().Get("Mcp-Session-Id")
	return inSession(id, mcp.Revision20251125)
}

// A session ends when it was idle for longer than Idle.
func TestIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := streamable.Handler(testServer(nil), &streamable.Options{Sessions: streamable.SessionOptions{Idle: 10 * time.Minute}})
		defer func() { _ = endpoint.Shutdown(t.Context()) }()
		in := openAt(endpoint)
		time.Sleep(9 * time.Minute)
		if got := request(endpoint, pingBody, in...); got.Code != 200 {
			t.Fatalf("in use: %d %s", got.Code, got.Body)
		}
		time.Sleep(12 * time.Minute) // the registry looks once a minute
		if got := request(endpoint, pingBody, in...); got.Code != 404 {
			t.Errorf("idle: %d %s", got.Code, got.Body)
		}
	})
}

// stream opens a GET stream and returns its lines.
func stream(t *testing.T, url string, fields ...string) (lines <-chan string, cut func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	own := &http.Transport{}
	resp, err := (&http.Client{Transport: own}).Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("GET: %v %v", resp, err)
	}
	out := make(chan string, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			out <- in.Text()
		}
	}()
	cut = func() { cancel(); <-done; resp.Body.Close(); own.CloseIdleConnections() }
	t.Cleanup(cut)
	return out, cut
}

// until reads up to a line with a prefix and returns the rest of that line.
func until(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	timeout := time.After(polltest.Limit)
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before %q", prefix)
			}
			if rest, ok := strings.CutPrefix(line, prefix); ok {
				return strings.TrimPrefix(rest, " ")
			}
		case <-timeout:
			t.Fatalf("no line begins with %q", prefix)
		}
	}
}

// A client that resumes a stream must get the events after the named one, and none twice.
func TestResume(t *testing.T) {
	s := testServer(nil)
	_, web := serve(t, s)
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	lines, cut := stream(t, url, in...)
	primed := until(t, lines, "id:")
	until(t, lines, "retry:")
	grow := func(name string) {
		server.Tool(s, name, "New.", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	grow("one")
	first := until(t, lines, "id:")
	until(t, lines, "data:")
	cut()
	grow("two") // without a client
	again, _ := stream(t, url, append(in, "Last-Event-ID", primed)...)
	if id := until(t, again, "id:"); id != first {
		t.Errorf("the first event that comes again is %q, want %q", id, first)
	}
	if second := until(t, again, "id:"); second == first || second == primed {
		t.Errorf("the second event has the id %q", second)
	}
	if got := send(t, "GET", url, "", append(in, "Accept", "text/event-stream", "Last-Event-ID", "forged")...); got.status != 400 {
		t.Errorf("a forged event id: %d", got.status)
	}
	foreign := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "GET", url, "", append(foreign, "Accept", "text/event-stream", "Last-Event-ID", first)...); got.status != 400 {
		t.Errorf("an event of another session: %d", got.status)
	}
}

// If the server has forgotten a session, the client must open another one and repeat safe requests.
func TestSessionLost(t *testing.T) {
	endpoint, web := serve(t, testServer(nil))
	c := dial(t, web.URL+"/mcp", mcp.Revision20251125, client.Options{
		Restart: client.Restart{Base: time.Millisecond},
	})
	for range 2 {
		endpoint.Forget()
		for _, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Errorf("a list, after the session was lost: %v", err)
			}
		}
	}
	endpoint.Forget()
	_, err := client.Call[string](t.Context(), c, "echo", message{"x"})
	if err == nil || !strings.Contains(err.Error(), "session") {
		t.Errorf("a call, after the session was lost: %v", err)
	}
	polltest.Until(t, "the client heals", func() bool {
		_, err := client.Call[string](t.Context(), c, "echo", message{"x"})
		return err == nil
	})
}

// lastingCalls counts the tool calls and subscriptions that its server has begun to serve.
type lastingCalls struct {
	*server.Server
	lasting atomic.Int32
}

func (l *lastingCalls) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method == mcp.MethodCallTool || req.Method == mcp.MethodListen {
		l.lasting.Add(1)
	}
	return l.Server.ServeMCP(ctx, req)
}

// Shutdown waits for calls in flight, ends streams with a result and refuses further requests.
func TestShutdown(t *testing.T) {
	gate := make(chan struct{})
	h := &lastingCalls{Server: testServer(gate)}
	endpoint, web := serve(t, h)
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	lines, _ := stream(t, url, in...)
	called := make(chan answer, 1)
	body := modernBody("tools/call", `"name":"wait","arguments":{}`)
	listened := make(chan answer, 1)
	go func() { called <- send(t, "POST", url, body, modernFields("tools/call", "Mcp-Name", "wait")...) }()
	go func() {
		listened <- send(t, "POST", url, modernBody("subscriptions/listen", `"notifications":{"toolsListChanged":true}`), modernFields("subscriptions/listen")...)
	}()
	until(t, lines, "id:")
	polltest.Until(t, "the handler serves both requests and the session's subscription", func() bool { return h.lasting.Load() == 3 })
	shut := make(chan error, 1)
	go func() { shut <- endpoint.Shutdown(t.Context()) }()
	polltest.Until(t, "new requests are refused", func() bool {
		got := send(t, "POST", url, listBody, modernFields("tools/list")...)
		return got.status == 503 && got.header.Get("Retry-After") != ""
	})
	if got := <-listened; got.status != 200 || !strings.Contains(got.body, `"result":{"resultType":"complete"`) {
		t.Errorf("the subscription ended with %d %s", got.status, got.body)
	}
	openGate(t, gate)
	if got := <-called; got.status != 200 || !strings.Contains(got.body, "let go") {
		t.Errorf("the call in flight: %d %s", got.status, got.body)
	}
	if err := <-shut; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	for range lines { // until the stream ends
	}
}

// sharedSessions is a store of several replicas.
type sharedSessions struct {
	mu      sync.Mutex
	records map[string][]byte
	final   map[string]bool
}

func (s *sharedSessions) Load(_ context.Context, key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key], nil
}

func (s *sharedSessions) Save(_ context.Context, key string, record []byte, final bool, _ time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records, s.final = map[string][]byte{}, map[string]bool{}
	}
	if !s.final[key] {
		s.records[key], s.final[key] = record, final
	}
	return nil
}
