package doctor

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// listen serves h, and says nothing of handshakes that clients refuse.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

func served(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := listen(t, h)
	s.Start()
	return s
}

// answers is a server that says the same to everybody.
func answers(status int, body string, fields ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestURLsThatWork(t *testing.T) {
	over := sse.Handler(example(), nil)
	t.Cleanup(func() { _ = over.Shutdown(context.Background()) })
	modern := streamable.Handler(example(), nil)
	t.Cleanup(func() { _ = modern.Shutdown(context.Background()) })
	for _, test := range []struct {
		name      string
		handler   http.Handler
		target    func(string) any
		handshake string
		http      string
	}{
		{"streamable by URL", modern, func(u string) any { return u }, "2026-07-28, modern", "POST → 200 application/json"},
		{"streamable", modern, func(u string) any { return streamable.URL{URL: u} }, "2026-07-28, modern", "POST → 200"},
		{"sse by URL", over, func(u string) any { return u }, "legacy, over the older HTTP+SSE", "GET → 200 text/event-stream"},
		{"sse", over, func(u string) any { return sse.URL{URL: u} }, "legacy, over the older HTTP+SSE", "GET → 200 text/event-stream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := steps(t, Patient{Target: test.target(served(t, test.handler).URL)})
			want := "definition > name(skipped) > connect > HTTP > handshake > server > lists > end"
			if got := path(all); got != want {
				t.Errorf("the steps are\n%s, want\n%s", got, want)
			}
			contains(t, named(t, all, "connect").Detail, "TCP to 127.0.0.1:")
			contains(t, named(t, all, "HTTP").Detail, test.http)
			contains(t, named(t, all, "handshake").Detail, test.handshake)
			contains(t, named(t, all, "lists").Detail, "2 tools, 1 resource, 1 prompt")
		})
	}
}

func TestAnswersOfHTTP(t *testing.T) {
	const login = `<html><form action="/login">`
	metadata := `WWW-Authenticate: Bearer error="invalid_token", resource_metadata="https://auth.example/meta"`
	for _, test := range []struct {
		name            string
		handler         http.HandlerFunc
		header          string // Authorization
		summary, advice string
	}{
		{"401", answers(401, "who?"), "", "401 Unauthorized: who?", "Give the server's credentials"},
		{"401 with metadata", answers(401, "", metadata), "", "said at https://auth.example/meta", "Log in to the server"},
		{"401 with credentials", answers(401, "", metadata), "Bearer opensesame", "401", "Renew the credentials"},
		{"403", answers(403, ""), "", "403 Forbidden", "hosts and origins"},
		{"403 with credentials", answers(403, ""), "Bearer opensesame", "403", "may use this server"},
		{"403 for a scope", answers(403, "", `WWW-Authenticate: Bearer error="insufficient_scope", scope="files:write"`), "Bearer opensesame", "403", "scope files:write"},
		{"404", answers(404, "no such page"), "", "404 Not Found: no such page", "/mcp, as in http://127.0.0.1:"},
		{"405", answers(405, ""), "", "405", "often /mcp or /sse"},
		{"406", answers(406, ""), "", "406", "request's headers"},
		{"407", answers(407, ""), "", "407", "proxy's user"},
		{"408", answers(408, ""), "", "408", "too slowly"},
		{"410", answers(410, ""), "", "410", "MCP endpoint"},
		{"415", answers(415, ""), "", "415", "request's headers"},
		{"421", answers(421, ""), "", "421", "host name"},
		{"429", answers(429, ""), "", "429", "too many"},
		{"429 with a time", answers(429, "", "Retry-After: 17"), "", "429", "Retry-After: 17"},
		{"500", answers(500, "oops"), "", "500 Internal Server Error: oops", "log of the server"},
		{"501", answers(501, ""), "", "501", "MCP endpoint"},
		{"503", answers(503, ""), "", "503", "behind this address runs"},
		{"a page", answers(200, "<html>", "Content-Type: text/html"), "", "an HTML page", "path is often /mcp"},
		{"a login page", answers(200, login, "Content-Type: text/html; charset=utf-8"), "", "an HTML page", "login page"},
		{"a text", answers(200, "hello", "Content-Type: text/plain"), "", `content of type "text/plain"`, "path is often /mcp"},
		{"other JSON", answers(200, `{"status":"ok"}`, "Content-Type: application/json"), "", "does not speak MCP", "path is often /mcp"},
		{"a redirect away", answers(307, "", "Location: https://elsewhere.example/mcp"), "", "another origin, https://elsewhere.example", "https://elsewhere.example in place"},
		{"a redirect to a login", answers(302, "", "Location: /login?next=x"), "", "302", "login page"},
		{"a redirect to a page", answers(302, "", "Location: /other?session=abcdefgh"), "", "302", "/other?… in place"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := served(t, test.handler).URL
			o := client.Options{Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler)}
			if test.header != "" {
				o.Header = func(context.Context) (http.Header, error) {
					return http.Header{"Authorization": {test.header}}, nil
				}
			}
			s := failing(t, Patient{Target: u, Options: o})
			if s.Name != "HTTP" && test.name != "other JSON" {
				t.Errorf("the step is %s", s.Name)
			}
			contains(t, s.Detail, test.summary)
			contains(t, s.Advice, test.advice)

			_, err := client.Dial(t.Context(), u, o)
			d := Explain(err, Patient{Target: u, Options: o})
			if d.Step != s.Name || d.Summary != s.Detail || d.Advice != s.Advice {
				t.Errorf("the diagnosis of the error is %+v", d)
			}
		})
	}
}

func TestNoSuchPathBelowMCP(t *testing.T) {
	s := failing(t, Patient{Target: streamable.URL{URL: served(t, answers(404, "")).URL + "/mcp"}})
	contains(t, s.Advice, "nothing at this one")
}

// answerTo is a server that answers each method with an error of JSON-RPC.
func answerTo(code int, message, data string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id := "1"
		if i := strings.Index(string(body), `"id":`); i >= 0 {
			id, _, _ = strings.Cut(string(body[i+5:]), ",")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q%s}}`, id, code, message, data)
	}
}

func TestAnswersOfTheProtocol(t *testing.T) {
	for _, test := range []struct {
		name            string
		target          any
		revision        mcp.Revision
		summary, advice string
	}{
		{"no common revision", answerTo(-32022, "no", `,"data":{"supported":["2099-01-01"]}`), "", "no common protocol version", "share no revision"},
		{"refused", answerTo(-32603, "the database is away", ""), "", "the database is away (code -32603)", "report this answer"},
		{"pinned", answerTo(-32601, "what?", ""), "2026-07-28", "is pinned", "Leave out the pinned revision"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := served(t, test.target.(http.HandlerFunc)).URL
			s := failing(t, Patient{Target: streamable.URL{URL: u}, Options: client.Options{Revision: test.revision}})
			if s.Name != "handshake" {
				t.Errorf("the step is %s", s.Name)
			}
			contains(t, s.Detail, test.summary)
			contains(t, s.Advice, test.advice)
		})
	}
}

func TestDefinitions(t *testing.T) {
	for _, test := range []struct {
		name            string
		target          any
		summary, advice string
	}{
		{"nothing", nil, "neither a command nor a URL", "command or a URL"},
		{"no words", []string{}, "command is empty", "program that starts"},
		{"no URL", "", "URL is empty", "https://host/mcp"},
		{"no scheme", "example.com/mcp?token=abcdefgh", `"example.com/mcp…" is no URL`, "https:// or http:// in front"},
		{"a user and no scheme", "me:secret-word@example.com/mcp", `"…@example.com/mcp" is no URL`, "in front"},
		{"a web socket", "wss://example.com/mcp", "not spoken over wss", "http or https"},
		{"no host", "https:///mcp", "names no host", "https://host/path"},
		{"malformed", "https://user:hush-hush@exa mple.com/%zz", "malformed", "https://host/path"},
		{"malformed for streamable", streamable.URL{URL: "http://[::1"}, "malformed", "https://host/path"},
		{"no host for sse", sse.URL{URL: "http:"}, "names no host", "https://host/path"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := failing(t, Patient{Target: test.target})
			if s.Name != "definition" {
				t.Errorf("the step is %s", s.Name)
			}
			contains(t, s.Detail, test.summary)
			contains(t, s.Advice, test.advice)
			if text := fmt.Sprint(s, s.Diagnosis, s.Err); strings.Contains(text, "secret-word") || strings.Contains(text, "hush-hush") || strings.Contains(text, "abcdefgh") {
				t.Errorf("a secret is told: %s", text)
			}
		})
	}
	s := failing(t, Patient{Target: example(), Options: client.Options{Revision: "1999-01-01"}})
	contains(t, s.Advice, "protocol revision")
}

func TestOtherTargets(t *testing.T) {
	for name, target := range map[string]any{"a handler": example(), "a dialer": memory.Dialer(example())} {
		t.Run(name, func(t *testing.T) {
			if got := path(steps(t, Patient{Target: target})); got != "definition > handshake > server > lists > end" {
				t.Error(got)
			}
		})
	}
	s := failing(t, Patient{Target: 42})
	contains(t, s.Detail, "int is no target")

	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	s = failing(t, Patient{Target: io.ReadWriteCloser(here), Options: client.Options{Connect: 50 * time.Millisecond}})
	contains(t, s.Detail, "no connection within 50ms")
}

// What a server lists may fail; the walk goes on.
func TestListsThatFail(t *testing.T) {
	s := example()
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListPrompts {
				return nil, mcp.Errorf(-32603, "no prompts today")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	all := steps(t, Patient{Target: s})
	step := named(t, all, "lists")
	if step.Status != Warning || all[len(all)-1].Name != "end" {
		t.Errorf("%s", path(all))
	}
	contains(t, step.Detail, "2 tools, 1 resource, no list of prompts", "no prompts today")
	contains(t, step.Advice, "prompts")
}

func TestSecretsOfRequests(t *testing.T) {
	u := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no: "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.URL.Query().Get("token")+" "+r.URL.Query().Get("q"), 500)
	})).URL
	target := streamable.URL{URL: strings.Replace(u, "http://", "http://me:pass-word@", 1) + "/mcp?token=abcdef%2Bg&q=visible", Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer opensesame"}, "X-Api-Key": {"hush-hush"}}, nil
	}}
	all := steps(t, Patient{Target: target, Mask: func(s string) string { return strings.ReplaceAll(s, "visible", "…") }})
	var said strings.Builder
	for _, s := range all {
		fmt.Fprintln(&said, s.Detail, s.Advice, s.Err, s.Diagnosis)
	}
	for _, secret := range []string{"opensesame", "hush-hush", "abcdef", "pass-word", "visible"} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("%s is told: %s", secret, said.String())
		}
	}
	contains(t, said.String(), "500 Internal Server Error")
}
