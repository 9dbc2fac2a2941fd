package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/console"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// program is a program of a library user: a hub with a server, a gateway and a console.
type program struct {
	t     *testing.T
	page  *console.Console
	web   *httptest.Server
	token string
}

func startProgram(t *testing.T, o *console.Options) *program {
	t.Helper()
	s := server.New("clock", "1.0.0", nil)
	server.Tool(s, "greet", "Greets.", func(_ context.Context, in struct{ Name string }) (string, error) { return "Hello " + in.Name, nil })
	h := hub.New(nil)
	t.Cleanup(func() { _ = h.Close() })
	p := &program{t: t, page: console.New(t.Context(), h, o)}
	h.Apply([]hub.Definition{{Name: "clock", Target: s}}, "the test starts")
	h.Settle(t.Context())
	mux := http.NewServeMux()
	mux.Handle("/console/", p.page)
	mux.Handle("/mcp", p.page.Record(gateway.New(h, nil), func(g mcp.Handler) http.Handler { return streamable.Handler(g, nil) }))
	p.web = httptest.NewServer(mux)
	t.Cleanup(p.web.CloseClientConnections)
	t.Cleanup(p.web.Close)
	return p
}

// send sends a request of the console's page.
func (p *program) send(method, path, body string) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.web.URL+"/console/api"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	answer, err := p.web.Client().Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// wantStatus sends a request and returns the answer if it has a status.
func (p *program) wantStatus(status int, method, path, body string) map[string]any {
	p.t.Helper()
	answer := p.send(method, path, body)
	var decoded map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&decoded); err != nil || answer.StatusCode != status {
		p.t.Fatalf("%s %s: %s %v %v, want %d", method, path, answer.Status, decoded, err, status)
	}
	return decoded
}

// logIn exchanges a link for a token.
func (p *program) logIn(link string) {
	p.t.Helper()
	_, ticket, ok := strings.Cut(link, "/console/#login=")
	if !ok {
		p.t.Fatalf("the link is %s", link)
	}
	p.token, _ = p.wantStatus(http.StatusOK, http.MethodPost, "/login", `{"ticket": "`+ticket+`"}`)["token"].(string)
}

// The console shows the calls of the gateway's clients with both sides, and calls tools itself. It
// restarts servers, and refuses everything that is the program's.
func TestConsoleOfAHub(t *testing.T) {
	t.Parallel()
	p := startProgram(t, nil)
	p.wantStatus(http.StatusUnauthorized, http.MethodGet, "/v1/status", "")
	p.logIn(p.page.LoginURL(p.web.URL))
	c, err := client.Dial(t.Context(), p.web.URL+"/mcp", &client.Options{Info: mcp.Implementation{Name: "visitor", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "clock__greet", Arguments: json.RawMessage(`{"Name":"you"}`)}); err != nil {
		t.Fatal(err)
	}
	id := p.wantStatus(http.StatusOK, http.MethodPost, "/v1/calls", `{"server": "clock", "kind": "tool", "name": "greet", "arguments": "{\"Name\":\"me\"}"}`)["id"]
	if id != 1.0 {
		t.Fatalf("the call has the number %v", id)
	}
	seen := map[string]bool{}
	p.readStream(func(line map[string]any) bool {
		if line["k"] == "op" && line["name"] == "clock__greet" && line["status"] == "ok" {
			seen[line["client"].(string)] = true
			if line["server"] != "clock" {
				t.Errorf("the operation has no side of the server: %v", line)
			}
		}
		return seen["visitor"] && seen["console"]
	})
	var records struct {
		Records []struct{ Client, Name string }
	}
	polltest.Until(t, "both calls are in the audit log", func() bool {
		answer := p.send(http.MethodGet, "/v1/audit", "")
		records.Records = nil
		return json.NewDecoder(answer.Body).Decode(&records) == nil && len(records.Records) >= 2
	})
	p.wantStatus(http.StatusOK, http.MethodPost, "/v1/servers/clock/restart", "{}")
	p.wantStatus(http.StatusUnprocessableEntity, http.MethodPost, "/v1/servers/clock/disable", "{}")
	p.wantStatus(http.StatusUnprocessableEntity, http.MethodPost, "/v1/reload", "{}")
}

// readStream reads lines of the page's stream until done returns true.
func (p *program) readStream(done func(map[string]any) bool) {
	p.t.Helper()
	ended := time.AfterFunc(polltest.Limit, func() { p.web.CloseClientConnections() })
	defer ended.Stop()
	lines := bufio.NewScanner(p.send(http.MethodGet, "/v1/stream?rows=ops", "").Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			p.t.Fatal(err)
		}
		if done(line) {
			return
		}
	}
	p.t.Fatalf("the stream has ended too early: %v", lines.Err())
}

// A recorded call is exported, repeated in several forms, and compared with another one.
func TestRepeatedCalls(t *testing.T) {
	t.Parallel()
	p := startProgram(t, nil)
	p.logIn(p.page.LoginURL(p.web.URL))
	for _, name := range []string{"you", "me"} {
		p.wantStatus(http.StatusOK, http.MethodPost, "/v1/calls", `{"server": "clock", "kind": "tool", "name": "greet", "arguments": "{\"Name\":\"`+name+`\"}"}`)
	}
	var ids []string
	p.readStream(func(line map[string]any) bool {
		if id := fmt.Sprint(line["op"]); line["k"] == "op" && line["name"] == "clock__greet" && line["status"] == "ok" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return len(ids) == 2
	})
	call := p.wantStatus(http.StatusOK, http.MethodGet, "/v1/operations/"+ids[0]+"/call", "")
	if call["server"] != "clock" || call["name"] != "greet" || call["kind"] != "tool" || !strings.Contains(fmt.Sprint(call["as"]), "dowel call clock.greet --args") {
		t.Errorf("the call is %v", call)
	}
	c := p.wantStatus(http.StatusOK, http.MethodGet, "/v1/compare?a="+ids[0]+"&b="+ids[1], "")
	for _, part := range []string{"arguments", "result"} {
		if text := fmt.Sprint(c[part]); !strings.Contains(text, "- ") || !strings.Contains(text, "+ ") || !strings.Contains(text, "you") || !strings.Contains(text, "me") {
			t.Errorf("%s differ in %s", part, text)
		}
	}
	same := p.wantStatus(http.StatusOK, http.MethodGet, "/v1/compare?a="+ids[0]+"&b="+ids[0], "")
	if text := fmt.Sprint(same["arguments"], same["result"]); strings.Contains(text, "- ") || !strings.Contains(text, "greet") { // either call can be the first to end
		t.Errorf("an operation differs from itself: %s", text)
	}
	har := p.wantStatus(http.StatusOK, http.MethodGet, "/v1/export?format=har&filter=op:"+ids[0], "")
	if entries, _ := har["log"].(map[string]any)["entries"].([]any); len(entries) != 2 {
		t.Errorf("the archive has %d pairs, want one of each side", len(entries))
	}
	lines := bufio.NewScanner(p.send(http.MethodGet, "/v1/export?format=jsonl&filter=op:"+ids[1], "").Body)
	n := 0
	for ; lines.Scan(); n++ {
		if l, err := journal.ParseLine(lines.Bytes(), n+1); err != nil || n > 0 && l.Op != 0 && fmt.Sprint(l.Op) != ids[1] {
			t.Errorf("line %d is %s: %v", n, lines.Bytes(), err)
		}
	}
	if n < 5 {
		t.Errorf("the recording has %d lines", n)
	}
	for _, wrong := range []string{"/v1/operations/9999/call", "/v1/operations/x/call", "/v1/compare?a=" + ids[0], "/v1/export?format=pdf", "/v1/export?format=har&filter=sever:x"} {
		p.wantStatus(http.StatusUnprocessableEntity, http.MethodGet, wrong, "")
	}
}

// A program may decide itself who uses the console. Requests that another page has made do not even
// get to its decision, and a console that only reads stays so.
func TestOwnAuthorization(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	p := startProgram(t, &console.Options{ReadOnly: true, Authorize: func(r *http.Request) error {
		asked <- r.URL.Path
		if user, _, _ := r.BasicAuth(); user != "ann" && r.Header.Get("Authorization") != "Bearer of-ann" {
			return errors.New("only ann may look")
		}
		return nil
	}})
	if refused := p.wantStatus(http.StatusUnauthorized, http.MethodGet, "/v1/status", ""); refused["error"] != "only ann may look" {
		t.Errorf("the refusal is %v", refused)
	}
	p.token = "of-ann"
	if s := p.wantStatus(http.StatusOK, http.MethodGet, "/v1/status", ""); s["version"] == "" {
		t.Errorf("the status is %v", s)
	}
	p.wantStatus(http.StatusForbidden, http.MethodPost, "/v1/servers/clock/restart", "{}")
	for len(asked) > 0 {
		<-asked
	}
	for name, change := range map[string]func(*http.Request){
		"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port":   func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"a foreign name": func(r *http.Request) { r.Host = "evil.example" },
	} {
		r := httptest.NewRequest(http.MethodGet, p.web.URL+"/console/api/v1/status", http.NoBody)
		r.Header.Set("Authorization", "Bearer of-ann")
		change(r)
		w := httptest.NewRecorder()
		p.page.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || len(asked) > 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
