package streamable_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/eventstream"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/wiretest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// checked passes requests to a server and fails the test for each message in an answer that the
// protocol does not allow. It checks each exchange alone, because a tap sees the messages of all
// clients mixed.
func checked(t testing.TB, h http.Handler) http.Handler {
	sessions := new(sync.Map) // the revisions of sessions, by id
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > streamable.DefaultMaxBody { // net/http closes the connection gently only if it sees its own ResponseWriter
			h.ServeHTTP(w, r)
			return
		}
		x := &exchange{ResponseWriter: w, ReadCloser: r.Body}
		r.Body = x
		defer func() { x.judge(t, r, sessions) }()
		h.ServeHTTP(x, r)
	})
}

// exchange records the part of a request's body that is read, and the answer.
type exchange struct {
	http.ResponseWriter
	io.ReadCloser
	asked, answer bytes.Buffer
}

// most bounds the recorded bytes of an answer.
const most = 1 << 20

func (x *exchange) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	x.asked.Write(p[:n])
	return n, err
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.answer.Len() <= most {
		x.answer.Write(p)
	}
	return x.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

func (x *exchange) judge(t testing.TB, r *http.Request, sessions *sync.Map) {
	check, ok := x.checker(r, sessions)
	if !ok {
		return
	}
	if r.Method == http.MethodPost {
		check.Frame(wiretest.Client, x.asked.Bytes()) // the client may send invalid messages on purpose
	}
	for _, frame := range x.frames() {
		for _, err := range check.Frame(wiretest.Server, frame) {
			t.Errorf("%s: %v", r.Method, err)
		}
		version := strings.Trim(string(rawjson.Lookup(rawjson.Lookup(frame, "result"), "protocolVersion")), `"`)
		if id := x.Header().Get("Mcp-Session-Id"); id != "" && version != "" {
			sessions.Store(id, version)
		}
	}
}

// checker returns the checker of an exchange, or nil if the revision of its session is unknown. It
// does not apply rules that need earlier exchanges.
func (x *exchange) checker(r *http.Request, sessions *sync.Map) (check *wiretest.Checker, ok bool) {
	o := wiretest.Options{Off: []wiretest.Check{wiretest.ResponseID, wiretest.AfterEnd}}
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		revision, known := sessions.Load(id)
		if !known {
			return nil, false
		}
		o.Revision = revision.(string)
		o.Off = append(o.Off, wiretest.Progress, wiretest.Cancellation)
	} else if version := mcp.Revision(r.Header.Get("Mcp-Protocol-Version")); version.Known() && !version.Modern() {
		o.Revision = string(version)
	}
	return wiretest.NewChecker(o), true
}

func (x *exchange) frames() (frames [][]byte) {
	switch kind, _, _ := strings.Cut(x.Header().Get("Content-Type"), ";"); {
	case x.answer.Len() > most:
	case kind == "application/json":
		frames = append(frames, bytes.TrimSpace(x.answer.Bytes()))
	case kind == "text/event-stream":
		events := eventstream.NewReader(&x.answer, 0)
		for {
			e, err := events.Next()
			if err != nil {
				return frames
			}
			if len(e.Data) > 0 {
				frames = append(frames, bytes.Clone(e.Data))
			}
		}
	}
	return frames
}
