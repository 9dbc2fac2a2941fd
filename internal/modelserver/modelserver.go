// Package modelserver simulates a language model for tests. Its [Server] is an http.Handler that
// speaks the providers' wire formats, answers from a [Script], and refuses invalid requests with
// the status and text of the real API.
//
// \tserver := modelserver.New(t.Error, script, modelserver.Chat, modelserver.Messages)
// \tweb := httptest.NewServer(server)
//
// Each accepted request takes the script's next turn, whichever protocol it uses. A refused request
// takes none.
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

// maxBody is the maximal size of a request in bytes.
const maxBody = 64 << 20

// Server simulates a model that follows a script. It is safe for concurrent use.
type Server struct {
	report func(...any)
	script Script
	mux    *http.ServeMux

	mu          sync.Mutex // guards the fields below
	playedTurns int
	captured    map[string]string // by name, see [Turn.Take]
	requests    []*Request
}

// Request is a request that the server received.
type Request struct {
	Path    string
	Header  http.Header
	Body    json.RawMessage
	Turn    int    // index in the script; -1 if it took no turn
	Refused string // the provider's error; empty if the request was accepted
}

// Protocol is a provider's wire format.
type Protocol struct {
	pattern string // for [http.ServeMux]
	serve   func(*exchange)
}

// New returns a server that speaks the given protocols. report receives test failures: requests
// that their turn does not expect, and requests after the last turn. It may be called from any
// goroutine, like [testing.T.Error].
func New(report func(...any), script Script, protocols ...Protocol) *Server {
	s := &Server{report: report, script: script, mux: http.NewServeMux()}
	for _, p := range protocols {
		s.mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) { s.handle(p, w, r) })
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

// Left returns the number of turns that were not played yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.Turns) - s.playedTurns
}

// exchange is a request and its response. A protocol parses body, checks it, calls refuseRequest or
// nextTurn, and responds.
type exchange struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	request *Request
}

func (s *Server) handle(p Protocol, w http.ResponseWriter, r *http.Request) {
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

// nextTurn takes the script's next turn and waits for its delay. last is the text of the last
// message, which the turn's expectations are checked against. If it returns an error, the error was
// already reported, and the protocol must respond with it.
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
	n := e.playedTurns
	if n >= len(e.script.Turns) {
		return nil, fmt.Errorf("the script has %d turns, but another request arrived: %s", n, shortenText(last))
	}
	e.playedTurns++
	e.request.Turn = n
	t := &e.script.Turns[n]
	for _, part := range t.Expect {
		if !strings.Contains(last, part) {
			return nil, fmt.Errorf("turn %d expects %q in the last message, which is: %s", n, part, shortenText(last))
		}
	}
	for _, part := range t.ExpectBody {
		if !bytes.Contains(e.body, []byte(part)) {
			return nil, fmt.Errorf("turn %d expects %q in the request, which is: %s", n, part, shortenText(string(e.body)))
		}
	}
	for name, pattern := range t.Take {
		m := regexp.MustCompile(pattern).FindStringSubmatch(last) // patterns come from test files
		if m == nil {
			return nil, fmt.Errorf("turn %d looks for %q in the last message, which is: %s", n, pattern, shortenText(last))
		}
		if e.captured == nil {
			e.captured = map[string]string{}
		}
		e.captured[name] = m[1]
	}
	return t.fillTemplates(e.captured), nil
}

func shortenText(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// refuseRequest responds with an error in the protocol's format, and records why.
func (e *exchange) refuseRequest(status int, why string, body any) {
	e.mu.Lock()
	e.request.Refused = why
	e.mu.Unlock()
	e.writeJSON(status, body)
}

func (e *exchange) writeJSON(status int, body any) {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.WriteHeader(status)
	_ = json.NewEncoder(e.w).Encode(body) // the client may have gone
}

// startStream starts an event stream.
func (e *exchange) startStream() {
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.WriteHeader(http.StatusOK)
}

// sendEvent sends an event. An empty name is left out. data is a string, or a value to encode as
// JSON.
func (e *exchange) sendEvent(name string, data any) {
	text, ok := data.(string)
	if !ok {
		encoded, err := json.Marshal(data)
		if err != nil {
			panic(err) // cannot happen: data is a protocol's own type
		}
		text = string(encoded)
	}
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	_ = http.NewResponseController(e.w).Flush() // the client may have gone
}

// abortResponse closes the connection in the middle of the response.
func (e *exchange) abortResponse() { panic(http.ErrAbortHandler) }

// splitText splits a text into up to five pieces, like a stream. It never splits a character.
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
