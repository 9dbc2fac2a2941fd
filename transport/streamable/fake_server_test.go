package streamable_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// posted is a message that a fakeServer has received.
type posted struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// fakeServer is a legacy or modern server that follows the protocol unless a test overrides it.
type fakeServer struct {
	session string
	post    func(w http.ResponseWriter, r *http.Request, m posted) (answered bool) // nil follows the protocol
	get     http.HandlerFunc                                                       // nil answers 405
	silence string                                                                 // an HTTP method that is never answered
	gone    <-chan struct{}                                                        // closed when the test ends

	mu     sync.Mutex
	seen   map[string]int // messages by method, and requests other than POST
	header map[string]http.Header
}

// start serves until the test ends and returns the URL.
func (b *fakeServer) start(t testing.TB) string {
	t.Helper()
	gone := make(chan struct{})
	b.gone, b.seen, b.header = gone, map[string]int{}, map[string]http.Header{}
	web := httptest.NewServer(b)
	t.Cleanup(func() {
		close(gone)
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

func (b *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m posted
	name := r.Method
	if r.Method == http.MethodPost {
		raw, _ := io.ReadAll(r.Body)
		if json.Unmarshal(raw, &m) == nil && m.Method != "" {
			name = m.Method
		}
	}
	b.mu.Lock()
	b.seen[name]++
	b.header[name] = r.Header
	b.mu.Unlock()
	switch {
	case r.Method == b.silence:
		b.silent(r)
	case r.Method == http.MethodGet && b.get != nil:
		b.get(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case b.post == nil || !b.post(w, r, m):
		b.answer(w, m)
	}
}

// count returns how often a method was seen.
func (b *fakeServer) count(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[name]
}

// last returns the header of the last request of a method.
func (b *fakeServer) last(name string) http.Header {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.header[name]
}

// silent leaves a request without an answer.
func (b *fakeServer) silent(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-b.gone:
	}
}

func (b *fakeServer) answer(w http.ResponseWriter, m posted) {
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if m.Method == mcpwire.MethodInitialize && b.session != "" {
		w.Header()["Mcp-Session-Id"] = []string{b.session}
	}
	fmt.Fprint(w, proper(m))
}

// proper returns the response that the protocol requires. The result of a call says "fine".
func proper(m posted) string {
	result := `{}`
	switch m.Method {
	case mcp.MethodDiscover:
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}`
	case mcpwire.MethodInitialize:
		var p mcpwire.InitializeParams
		_ = json.Unmarshal(m.Params, &p) // the client is ours
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bad","version":"1"}}`, p.ProtocolVersion)
	case mcp.MethodListTools:
		result = `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`
	case mcp.MethodCallTool:
		return said(m, "fine")
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// said returns the response to a call with a text.
func said(m posted, text string) string {
	raw, _ := json.Marshal(text)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":%s}]}}`, m.ID, raw)
}

// onCall returns a post function that lets f answer calls.
func onCall(f func(w http.ResponseWriter, r *http.Request, m posted)) func(http.ResponseWriter, *http.Request, posted) bool {
	return func(w http.ResponseWriter, r *http.Request, m posted) bool {
		if m.Method != mcp.MethodCallTool {
			return false
		}
		f(w, r, m)
		return true
	}
}

// stream writes the beginning of an event stream.
func beginStream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, text)
	w.(http.Flusher).Flush()
}

// abort ends a response in the middle.
func abort() { panic(http.ErrAbortHandler) }

const smallMessage = 2000 // in bytes, the limit of clients that dialFake makes

// mustDialFake is dialFake for a test in which the client can connect.
func mustDialFake(t testing.TB, url string, r mcp.Revision, opts client.Options) *client.Client {
	t.Helper()
	c, err := dialFake(t, url, r, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dialFake dials a fakeServer. It checks only the messages of the client and logs nothing.
func dialFake(t testing.TB, url string, r mcp.Revision, opts client.Options) (*client.Client, error) {
	t.Helper()
	own := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(own.CloseIdleConnections)
	opts.Wire.Revision, opts.Logger = r, slog.New(slog.DiscardHandler)
	if opts.Wire.Tap == nil {
		opts.Wire.Tap = mcptest.ClientTap(t, mcptest.SentOnly())
	}
	if opts.Wire.Verdicts == nil {
		opts.Wire.Verdicts = new(transport.Verdicts)
	}
	c, err := client.Dial(t.Context(), streamable.URL{URL: url, Client: own, Header: opts.HTTP.Header, MaxMessage: smallMessage}, &opts)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// callFake returns the result of a call. It fails the test if the call does not end.
func callFake(t testing.TB, c *client.Client, opts ...client.CallOptions) (string, error) {
	t.Helper()
	type outcome struct {
		text string
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		text, err := client.Call[string](t.Context(), c, "t", nil, opts...)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-time.After(polltest.Limit):
		c.Close()
		t.Fatalf("the call still waits; after Close: %v", (<-done).err)
		return "", nil
	}
}

// bothEras are a revision with sessions and resumption, and one without.
var bothEras = []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision}

func inBothEras(t *testing.T, test func(t *testing.T, r mcp.Revision)) {
	for _, r := range bothEras {
		t.Run(string(r), func(t *testing.T) { test(t, r) })
	}
}
