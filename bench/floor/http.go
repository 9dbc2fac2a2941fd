package floor

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/dowel-mcp/dowel/internal/floor/floorhttp"
)

// Handler implements peer.Server.
func (s *server) Handler(era peer.Era, stream bool) (http.Handler, error) {
	calls := floorhttp.Handler()
	if stream {
		calls = Events(calls)
	}
	return s.open.Before(calls, http.HandlerFunc(s.serveList), era), nil
}

func (s *server) serveList(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	b := bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"result":`)
	if err := json.MarshalWrite(b, s.list); err != nil {
		panic(err)
	}
	b.WriteByte('}')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_, _ = w.Write(b.Bytes())
}

// Open holds the open responses and the sessions. Its zero value is ready to use.
type Open struct {
	mu        sync.Mutex
	sessions  map[string]struct{}
	responses map[http.ResponseWriter]*http.ResponseController
}

// Before returns a handler that serves sessions and streams, and passes calls and list requests to
// the two other handlers.
func (o *Open) Before(calls, lists http.Handler, era peer.Era) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method := r.Header["Mcp-Method"]
		switch {
		case r.Method == http.MethodGet || len(method) == 1 && method[0] == "subscriptions/listen":
			o.listen(w, r)
		case len(method) == 1 && method[0] == "tools/list":
			lists.ServeHTTP(w, r)
		case era == peer.Legacy && r.Header["Mcp-Protocol-Version"] == nil:
			o.initialize(w, r)
		case r.ContentLength < initialized: // only notifications/initialized is so short
			w.WriteHeader(http.StatusAccepted)
		default:
			calls.ServeHTTP(w, r)
		}
	})
}

const initialized = 80 // bytes

func (o *Open) initialize(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	id := hex.EncodeToString(fmt.Appendf(nil, "%016x", rand.Uint64()))
	o.mu.Lock()
	if o.sessions == nil {
		o.sessions = map[string]struct{}{}
	}
	o.sessions[id] = struct{}{}
	o.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", id)
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+hello2025+`}`)
}

func (o *Open) listen(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	o.mu.Lock()
	_, _ = io.WriteString(w, "data: open\n\n")
	_ = control.Flush()
	if o.responses == nil {
		o.responses = map[http.ResponseWriter]*http.ResponseController{}
	}
	o.responses[w] = control
	o.mu.Unlock()
	<-r.Context().Done()
	o.mu.Lock()
	delete(o.responses, w)
	o.mu.Unlock()
}

// Send writes an event to all open responses.
func (o *Open) Send(event []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for w, control := range o.responses {
		_, _ = w.Write(event)
		_ = control.Flush()
	}
}

// Events returns a handler that sends each answer of another one as an event stream of one event.
func Events(h http.Handler) http.Handler { return events{h} }

type events struct{ http.Handler }

func (e events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Handler.ServeHTTP(asEvent{w}, r)
}

type asEvent struct{ http.ResponseWriter }

func (w asEvent) Write(document []byte) (int, error) {
	h := w.Header()
	h["Content-Type"] = eventStream
	delete(h, "Content-Length")
	event := append(make([]byte, 0, len(document)+len("data: \n\n")), "data: "...)
	event = append(append(event, document...), "\n\n"...)
	return w.ResponseWriter.Write(event)
}

var eventStream = []string{"text/event-stream"}

// Documents converts the answers of [Events] back to documents.
func Documents(rt http.RoundTripper) http.RoundTripper { return documents{rt} }

type documents struct{ http.RoundTripper }

func (d documents) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil || resp.Header["Content-Type"][0] != eventStream[0] {
		return resp, err
	}
	event, err := io.ReadAll(resp.Body)
	document := bytes.TrimSuffix(bytes.TrimPrefix(event, []byte("data: ")), []byte("\n\n"))
	resp.ContentLength = int64(len(document))
	resp.Body = body{bytes.NewReader(document), resp.Body}
	return resp, err
}

// body reads a document and closes its source.
type body struct {
	io.Reader
	io.Closer
}
