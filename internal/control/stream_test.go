package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
)

// consoleAPI is the API of the console over HTTP, with a journal.
type consoleAPI struct {
	t        *testing.T
	hub      *hub.Hub
	recorder *journal.Recorder
	did      chan string
	url      string
}

func serveConsoleAPI(t *testing.T) *consoleAPI {
	t.Helper()
	h := hub.New(nil)
	recorder := journal.New(journal.Options{Bytes: 64 << 10})
	c := &controller{h, make(chan string, 1)}
	life, end := context.WithCancel(t.Context())
	web := httptest.NewServer(control.ConsoleAPI(control.Running{Life: life, Controller: c, Hub: h, Recorder: recorder}))
	t.Cleanup(func() {
		end()
		web.Close()
		recorder.Close()
		h.Close()
	})
	h.Apply([]hub.Definition{{Name: "one", Target: everything.New(), Origin: "built in"}}, "the test begins")
	h.Settle(t.Context())
	return &consoleAPI{t, h, recorder, c.did, web.URL}
}

// line is a line of a stream.
type line struct {
	Gone                                               bool
	K, Boot, Server, Client, Name, What, Error, Status string
	Seq, Op, From, To                                  uint64
}

// UnmarshalJSON accepts a status, which is an object or the word of an operation.
func (l *line) UnmarshalJSON(text []byte) error {
	type plain line
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	if s := all["status"]; len(s) > 0 && s[0] == '{' {
		delete(all, "status")
	}
	text, _ = json.Marshal(all)
	return json.Unmarshal(text, (*plain)(l))
}

// follow returns the lines of a stream, which ends with the test.
func (a *consoleAPI) follow(query url.Values) (next func() line) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	a.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/v1/stream?"+query.Encode(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return func() (l line) {
		a.t.Helper()
		if !lines.Scan() {
			a.t.Fatalf("the stream has ended: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			a.t.Fatalf("%v: %s", err, lines.Bytes())
		}
		return l
	}
}

// rowsUntil returns the rows of a stream up to the line that is complete up to a number.
func rowsUntil(next func() line, seq uint64) (rows []line) {
	for {
		switch l := next(); l.K {
		case "seq":
			if l.Seq >= seq {
				return rows
			}
		case "op", "frame", "gap":
			rows = append(rows, l)
		}
	}
}

// call records a call of a tool that a client makes.
func (a *consoleAPI) call(number int, tool, result string) {
	a.t.Helper()
	c := a.recorder.ClientConn()
	id := strconv.Itoa(number)
	c.AddFrame(framesink.Received, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cursor","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"`+tool+`","arguments":{"path":"/etc"}}}`), nil)
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`), nil)
}

func (a *consoleAPI) newest() uint64 {
	_, newest := a.recorder.Bounds()
	return newest
}

// get decodes the answer to a request.
func (a *consoleAPI) get(path string, into any) int {
	a.t.Helper()
	resp, err := http.Get(a.url + path)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		a.t.Fatal(err)
	}
	return resp.StatusCode
}

// An operation that the filter accepts while it waits is shown, and is gone when its end is
// refused.
func TestStreamOfChangingOperation(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	c := a.recorder.ClientConn()
	c.AddFrame(framesink.Received, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`), nil)
	next := a.follow(url.Values{"filter": {"-status:ok"}})
	waits := rowsUntil(next, 1)
	if len(waits) != 1 || waits[0].Status != "pending" || waits[0].Gone {
		t.Fatalf("%+v", waits)
	}
	c.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`), nil)
	ended := rowsUntil(next, a.newest())
	for len(ended) == 0 {
		ended = rowsUntil(next, a.newest())
	}
	if last := ended[len(ended)-1]; last.Op != waits[0].Op || !last.Gone {
		t.Errorf("%+v", ended)
	}
}

// An operation that a stream has forgotten, since many others came later, is gone when it ends.
func TestStreamForgetsNoOpenOperation(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	slow := a.recorder.ClientConn()
	slow.AddFrame(framesink.Received, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`), nil)
	next := a.follow(url.Values{"filter": {"status:pending"}})
	if rows := rowsUntil(next, 1); len(rows) != 1 {
		t.Fatalf("%+v", rows)
	}
	for i := range 2100 {
		a.call(i+2, "quick", `{"content":[]}`)
	}
	slow.AddFrame(framesink.Sent, []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`), nil)
	isGone := false
	for end := a.newest(); !isGone; {
		rows := rowsUntil(next, end)
		for _, r := range rows {
			isGone = isGone || r.Name == "read" && r.Gone
		}
		if end = a.newest(); len(rows) == 0 && !isGone {
			continue
		}
	}
}

// A stream has the status, the operations that the filter accepts, and continues where it was left.
func TestStream(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	a.call(1, "read", `{"content":[]}`)
	a.call(2, "write", `{"content":[],"isError":true}`)
	first := a.newest()
	next := a.follow(nil)
	boot := next()
	if boot.K != "boot" || boot.Boot != a.recorder.Boot() {
		t.Errorf("%+v", boot)
	}
	if l := next(); l.K != "status" {
		t.Errorf("%+v", l)
	}
	rows := rowsUntil(next, first)
	last := rows[len(rows)-1]
	if last.K != "op" || last.Name != "write" || last.Status != "tool-error" || last.Client != "cursor" || last.What != `{"path":"/etc"}` {
		t.Errorf("%+v", rows)
	}
	failed := rowsUntil(a.follow(url.Values{"filter": {"status:tool-error"}}), first)
	if len(failed) != 1 || failed[0].Name != "write" {
		t.Errorf("%+v", failed)
	}
	frames := rowsUntil(a.follow(url.Values{"rows": {"frames"}, "filter": {"tool:read"}}), first)
	if len(frames) != 2 || frames[0].K != "frame" || frames[0].What != `read {"path":"/etc"}` {
		t.Errorf("%+v", frames)
	}
	a.call(3, "list", `{"content":[]}`)
	for _, test := range []struct {
		boot string
		want string
	}{{boot.Boot, "list"}, {"another", "read"}} {
		rows := rowsUntil(a.follow(url.Values{"after": {strconv.FormatUint(first, 10)}, "boot": {test.boot}}), a.newest())
		if rows[0].Name != test.want {
			t.Errorf("boot %s: %+v", test.boot, rows)
		}
	}
	wrong := a.follow(url.Values{"filter": {"sever:x"}})
	for l := wrong(); l.K != "filter"; l = wrong() {
		if l.K == "op" {
			t.Fatalf("%+v", l)
		}
	}
}

// What the ring has dropped is a gap. A change of a server is a new status, and news in its logs.
func TestStreamShowsLossAndChanges(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	for i := range 200 {
		a.call(i, "read", `{"content":[{"type":"text","text":"`+strings.Repeat("x", 2000)+`"}]}`)
	}
	newest := a.newest() // the journal has taken all calls
	next := a.follow(nil)
	rows := rowsUntil(next, newest)
	if rows[0].K != "gap" || rows[0].From != 1 || rows[0].To == 0 {
		t.Errorf("%+v", rows[0])
	}
	a.hub.Upstream("one").Restart("the test wants it")
	logged := false
	for l := next(); l.K != "status" || !logged; l = next() {
		logged = logged || l.K == "log" && l.Server == "one"
	}
}

// An operation has its messages, a message its whole text, and a client what it does.
func TestDetails(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	a.call(7, "read", `{"content":[]}`)
	open := a.recorder.ClientConn()
	open.AddFrame(framesink.Received, []byte(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cursor","version":"1"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"slow"}}`), nil)
	server := a.recorder.ServerConn("one")
	server.AddFrame(framesink.Malformed, []byte(`{"params":`), nil)
	a.newest()
	var detail struct {
		Operation line
		Frames    []line
	}
	if code := a.get("/v1/operations/1", &detail); code != http.StatusOK || detail.Operation.Name != "read" || len(detail.Frames) != 2 {
		t.Errorf("%d %+v", code, detail)
	}
	var frame struct{ Frame struct{ Method string } }
	if code := a.get("/v1/frames/1", &frame); code != http.StatusOK || frame.Frame.Method != "tools/call" {
		t.Errorf("%d %+v", code, frame)
	}
	for _, path := range []string{"/v1/frames/99999", "/v1/operations/99999", "/v1/frames/0", "/v1/frames/x"} {
		var failed struct{ Error string }
		if code := a.get(path, &failed); code != http.StatusUnprocessableEntity || failed.Error == "" {
			t.Errorf("%s: %d", path, code)
		}
	}
	var clients []control.ClientActivity
	if a.get("/v1/clients", &clients); len(clients) != 1 || clients[0].Name != "cursor" || clients[0].Operations != 2 || clients[0].Connections != 2 || len(clients[0].Open) != 1 || clients[0].Open[0].Name != "slow" {
		t.Errorf("%+v", clients)
	}
	strays := rowsUntil(a.follow(url.Values{"filter": {"kind:stray"}}), a.newest())
	if len(strays) != 1 || strays[0].What != `{"params":` {
		t.Errorf("%+v", strays)
	}
}

// The console's API gives no token away, ends no dowel and serves no gateway.
func TestConsoleAPILacks(t *testing.T) {
	t.Parallel()
	a := serveConsoleAPI(t)
	for _, request := range []string{"GET /v1/token", "POST /v1/token/renew", "POST /v1/stop", "POST /v1/yield", "POST /v1/console", "POST /v1/authorize", "POST /mcp", "GET /v1/journal"} {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", request, resp.StatusCode)
		}
	}
}
