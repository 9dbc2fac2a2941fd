// Package modelserver is a scripted language model for tests: an http.Handler that speaks the wire
// formats of providers and answers from a [Script]. It checks requests as strictly as the real
// servers, and refuses bad ones with their words and their status.
//
//	server := modelserver.New(t.Error, script, modelserver.Chat, modelserver.Messages)
//	web := httptest.NewServer(server)
//
// Each request takes the script's next turn, over any of the protocols. A refused request takes none.
package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBody is the largest request, in bytes.
const maxBody = 64 << 20

// Server is a model that follows a script. It is safe for concurrent use.
type Server struct {
	report func(...any)
	script Script
	mux    *http.ServeMux

	mu       sync.Mutex // guards the fields below
	played   int
	taken    map[string]string // by [Turn.Take]
	requests []*Request
}

// Request is a request that the server has received.
type Request struct {
	Path    string
	Header  http.Header
	Body    json.RawMessage
	Turn    int    // index in the script; -1 if the request was refused
	Refused string // why the request was refused; empty if it was accepted
}

// Protocol is a provider's wire format.
type Protocol struct {
	pattern string // for [http.ServeMux]
	serve   func(*exchange)
}

// New returns a server that speaks the given protocols. It calls report for errors that must fail
// the test: a request that differs from the expectations of its turn, and a request after the
// last turn. report may be called from any goroutine, as [testing.T.Error] may.
func New(report func(...any), script Script, protocols ...Protocol) *Server {
	s := &Server{report: report, script: script, mux: http.NewServeMux()}
	for _, p := range protocols {
		s.mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) { s.serveProtocol(p, w, r) })
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests returns all requests so far, in order.
func (s *Server) Requests() (all []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		all = append(all, *r)
	}
	return all
}

// Left returns the number of turns that have not been played.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.Turns) - s.played
}

// exchange is a request and its answer. A protocol checks body, calls writeRefusal or nextTurn,
// and answers.
type exchange struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	request *Request
}

func (s *Server) serveProtocol(p Protocol, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	e := &exchange{Server: s, w: w, r: r, body: body, request: &Request{Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Turn: -1}}
	s.mu.Lock()
	s.requests = append(s.requests, e.request)
	s.mu.Unlock()
	p.serve(e)
}

// nextTurn takes the script's next turn and waits for its delay. It looks for expected texts in
// last, the text of the last message. An error has been reported already; the caller answers it.
func (e *exchange) nextTurn(last string) (*Turn, error) {
	t, err := e.takeTurn(last)
	if err != nil {
		e.report(err)
		return nil, err
	}
	select {
	case <-time.After(time.Duration(t.DelayMS) * time.Millisecond):
	case <-e.r.Context().Done():
	}
	return t, nil
}

func (e *exchange) takeTurn(last string) (*Turn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.played
	if n >= len(e.script.Turns) {
		return nil, fmt.Errorf("the script has %d turns, and there is another request: %s", n, abbreviate(last))
	}
	e.played++
	e.request.Turn = n
	t := &e.script.Turns[n]
	for _, part := range t.Expect {
		if !strings.Contains(last, part) {
			return nil, fmt.Errorf("turn %d expects %q in the last message, which is: %s", n, part, abbreviate(last))
		}
	}
	for _, part := range t.ExpectBody {
		if !bytes.Contains(e.body, []byte(part)) {
			return nil, fmt.Errorf("turn %d expects %q in the request, which is: %s", n, part, abbreviate(string(e.body)))
		}
	}
	for name, pattern := range t.Take {
		m := regexp.MustCompile(pattern).FindStringSubmatch(last) // of a test's own file
		if m == nil {
			return nil, fmt.Errorf("turn %d looks for %q in the last message, which is: %s", n, pattern, abbreviate(last))
		}
		if e.taken == nil {
			e.taken = map[string]string{}
		}
		e.taken[name] = m[1]
	}
	return t.fillIn(e.taken), nil
}

func abbreviate(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// writeRefusal answers with an error in the protocol's form, and records why.
func (e *exchange) writeRefusal(status int, why string, body any) {
	e.mu.Lock()
	e.request.Refused = why
	e.mu.Unlock()
	e.writeJSON(status, body)
}

func (e *exchange) writeJSON(status int, body any) {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.WriteHeader(status)
	_ = json.NewEncoder(e.w).Encode(body) // a client that has gone needs no answer
}

// startStream begins an event stream.
func (e *exchange) startStream() {
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.WriteHeader(http.StatusOK)
}

// writeEvent sends one event, without a name if name is empty. data is a string, which is sent as
// it is, or a value to encode as JSON.
func (e *exchange) writeEvent(name string, data any) {
	text, ok := data.(string)
	if !ok {
		encoded, err := json.Marshal(data)
		if err != nil {
			panic(err) // a protocol's own type
		}
		text = string(encoded)
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	_ = http.NewResponseController(e.w).Flush() // a client that has gone needs no answer
}

// abortAnswer closes the connection in the middle of the answer.
func (e *exchange) abortAnswer() { panic(http.ErrAbortHandler) }

// splitText splits a text into a few pieces, as a stream would, between characters.
func splitText(text string) []string {
	const most = 5
	all := []rune(text)
	if len(all) == 0 {
		return nil
	}
	var pieces []string
	for piece := range slices.Chunk(all, (len(all)+most-1)/most) {
		pieces = append(pieces, string(piece))
	}
	return pieces
}
