package sse_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// fake is a server that sends on its stream what the test writes.
type fake struct {
	web *httptest.Server

	path     string // of the stream
	endpoint string // sent as the endpoint
	post     func(f *fake, w http.ResponseWriter, r *http.Request, m jsonrpc.Message)
	out      chan string // sent over the stream; closing it ends the stream
	cut      chan struct{}

	mu   sync.Mutex
	seen []string // requests
	head []http.Header
}

// newFake serves a server that answers the handshake. Its fields may be changed before it is
// dialed.
func newFake(t testing.TB) *fake {
	f := &fake{path: "/sse", endpoint: "/messages?session=1", out: make(chan string, 16), cut: make(chan struct{})}
	f.post = handshake
	f.web = listen(t, f)
	return f
}

func (f *fake) url() string { return f.web.URL + f.path }

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.seen = append(f.seen, r.Method+" "+r.URL.RequestURI())
	f.head = append(f.head, r.Header)
	f.mu.Unlock()
	switch {
	case r.Method == "GET" && r.URL.Path == f.path:
		f.get(w, r)
	case r.Method == "POST" && r.URL.Path == "/messages":
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body, nil)
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		f.post(f, w, r, m)
	default:
		http.NotFound(w, r)
	}
}

func (f *fake) get(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", f.endpoint)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text, ok := <-f.out:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		case <-f.cut:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
			return
		}
	}
}

// message sends a message.
func (f *fake) message(format string, args ...any) {
	f.out <- "event: message\ndata: " + fmt.Sprintf(format, args...) + "\n\n"
}

// handshake answers initialize and accepts all other messages.
func handshake(f *fake, w http.ResponseWriter, _ *http.Request, m jsonrpc.Message) {
	w.WriteHeader(202)
	if m.Method == "initialize" {
		f.message(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}}`, m.ID)
	}
}

// requests lists the requests received so far.
func (f *fake) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.seen, ", ")
}

func (f *fake) headers() []http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]http.Header(nil), f.head...)
}
