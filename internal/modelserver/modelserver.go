// Package modelserver plays a language model for tests: an http.Handler that speaks the providers' wire formats, answers from a
// [Script], and refuses what the real ones refuse, in their words and with their status.
//
//	server := modelserver.New(t.Error, script, modelserver.Chat, modelserver.Messages)
//	web := httptest.NewServer(server)
//
// A request takes the script's next turn, whichever protocol it comes by. One that is refused takes none.
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

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Server is a model that follows a script. It is safe for concurrent use.
type Server struct {
	report func(...any)
	script Script
	mux    *http.ServeMux

	mu       sync.Mutex // guards all below
	played   int
	taken    map[string]string // by [Turn.Take]
	requests []*Request
}

// Request is one that the server has got.
type Request struct {
	Path    string
	Header  http.Header
	Body    json.RawMessage
	Turn    int    // of the script, from 0 on; -1 where it took none
	Refused string // what the provider had against it; empty where nothing
}

// Protocol is a provider's wire format.
type Protocol struct {
	pattern string // as [http.ServeMux] takes it
	serve   func(*exchange)
}

// New returns a server that speaks the given protocols. report gets what a test has to fail for: a request that is not what its turn
// expects, and one that comes after the last turn. It may be called from any goroutine, as [testing.T.Error] may.
func New(report func(...any), script Script, protocols ...Protocol) *Server {
	s := &Server{report: report, script: script, mux: http.NewServeMux()}
	for _, p := range protocols {
		s.mux.HandleFunc(p.pattern, func(w http.ResponseWriter, r *http.Request) { s.exchange(p, w, r) })
	}
	return s
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Requests returns all that the server has got so far, in order.
func (s *Server) Requests() (all []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		all = append(all, *r)
	}
	return all
}

// Left returns how many turns of the script have not been played.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.Turns) - s.played
}

// exchange is a request and its answer. A protocol reads body, checks it and calls refuse or turn, and answers.
type exchange struct {
	*Server
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	request *Request
}

func (s *Server) exchange(p Protocol, w http.ResponseWriter, r *http.Request) {
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

// turn takes the script's next turn, once its delay is over. last is the text of the last message, in which what is expected
// is looked for. An error has been reported, and is to be answered in the protocol's form.
func (e *exchange) turn(last string) (*Turn, error) {
	t, err := e.take(last)
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

func (e *exchange) take(last string) (*Turn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.played
	if n >= len(e.script.Turns) {
		return nil, fmt.Errorf("the script has %d turns, and there is another request: %s", n, shortened(last))
	}
	e.played++
	e.request.Turn = n
	t := &e.script.Turns[n]
	for _, part := range t.Expect {
		if !strings.Contains(last, part) {
			return nil, fmt.Errorf("turn %d expects %q in the last message, which is: %s", n, part, shortened(last))
		}
	}
	for _, part := range t.ExpectBody {
		if !bytes.Contains(e.body, []byte(part)) {
			return nil, fmt.Errorf("turn %d expects %q in the request, which is: %s", n, part, shortened(string(e.body)))
		}
	}
	for name, pattern := range t.Take {
		m := regexp.MustCompile(pattern).FindStringSubmatch(last) // of a test's own file
		if m == nil {
			return nil, fmt.Errorf("turn %d looks for %q in the last message, which is: %s", n, pattern, shortened(last))
		}
		if e.taken == nil {
			e.taken = map[string]string{}
		}
		e.taken[name] = m[1]
	}
	return t.filled(e.taken), nil
}

func shortened(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// refuse answers with an error in the protocol's form; why goes to the record.
func (e *exchange) refuse(status int, why string, body any) {
	e.mu.Lock()
	e.request.Refused = why
	e.mu.Unlock()
	e.json(status, body)
}

func (e *exchange) json(status int, body any) {
	e.w.Header().Set("Content-Type", "application/json")
	e.w.WriteHeader(status)
	_ = json.NewEncoder(e.w).Encode(body) // a client that has gone needs no answer
}

// stream begins an event stream.
func (e *exchange) stream() {
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.WriteHeader(http.StatusOK)
}

// event sends one event, with a name unless it is empty. data is a string as it is, or anything else as JSON.
func (e *exchange) event(name string, data any) {
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

// cut ends the answer in the middle, by closing the connection.
func (e *exchange) cut() { panic(http.ErrAbortHandler) }

// fragments cuts a text into pieces as a stream would: a few, and never through a character.
func fragments(text string) []string {
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
