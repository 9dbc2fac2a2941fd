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
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// newUnstartedServer returns a server for h that does not log failed handshakes.
func newUnstartedServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	return s
}

func startServer(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := newUnstartedServer(t, h)
	s.Start()
	return s
}

// respondWith returns a handler that answers every request alike.
func respondWith(status int, body string, fields ...string) http.HandlerFunc {
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
	over := sse.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = over.Shutdown(context.Background()) })
	modern := streamable.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = modern.Shutdown(context.Background()) })
	sockets := websocket.Handler(exampleServer(), nil)
	t.Cleanup(func() { _ = sockets.Shutdown(context.Background()) })
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
		{"WebSocket by URL", sockets, func(u string) any { return "ws" + strings.TrimPrefix(u, "http") }, "2026-07-28, modern", "GET → 101"},
		{"WebSocket", sockets, func(u string) any { return websocket.URL{URL: "ws" + strings.TrimPrefix(u, "http")} }, "2026-07-28, modern", "GET → 101"},
		{"sse", over, func(u string) any { return sse.URL{URL: u} }, "legacy, over the older HTTP+SSE", "GET → 200 text/event-stream"},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := examineAll(t, Server{Target: test.target(startServer(t, test.handler).URL)})
			want := "definition > name(skipped) > connect > HTTP > handshake > server > lists > end"
			if got := joinNames(all); got != want {
				t.Errorf("the steps are\n%s, want\n%s", got, want)
			}
			checkContains(t, stepNamed(t, all, "connect").Detail, "TCP to 127.0.0.1:")
			checkContains(t, stepNamed(t, all, "HTTP").Detail, test.http)
			checkContains(t, stepNamed(t, all, "handshake").Detail, test.handshake)
			checkContains(t, stepNamed(t, all, "lists").Detail, "2 tools, 1 resource, 1 prompt")
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
		{"401", respondWith(401, "who?"), "", "401 Unauthorized: the request had no credentials: who?", "Give the server's credentials"},
		{"401 with metadata", respondWith(401, "", metadata), "", "described at https://auth.example/meta", "Log in to the server"},
		{"401 with a token", respondWith(401, "", metadata), "Bearer opensesame", "it refuses the credentials of the request (invalid_token); its login", "Renew the token"},
		{"401 with credentials", respondWith(401, ""), "Basic opensesame", "it refuses the credentials of the request", "Renew the credentials"},
		{"401 with a reason", respondWith(401, "", `WWW-Authenticate: Bearer error=invalid_token, error_description="it expired at noon"`),
			"Bearer opensesame", "(invalid_token: it expired at noon)", "has expired or is not valid"},
		{"401 of dowel", respondWith(401, "the request has no token: run x", `WWW-Authenticate: Bearer realm="dowel"`), "", "the server is dowel itself: the request has no token: run x", "needs a token and no login"},
		{"403", respondWith(403, ""), "", "403 Forbidden", "hosts and origins"},
		{"403 with credentials", respondWith(403, ""), "Bearer opensesame", "403", "may use this server"},
		{"403 for a scope", respondWith(403, "", `WWW-Authenticate: Bearer error="insufficient_scope", scope="files:write"`), "Bearer opensesame", "403", "scope files:write"},
		{"404", respondWith(404, "no such page"), "", "404 Not Found: no such page", "/mcp, as in http://127.0.0.1:"},
		{"405", respondWith(405, ""), "", "405", "often /mcp or /sse"},
		{"406", respondWith(406, ""), "", "406", "request's headers"},
		{"407", respondWith(407, ""), "", "407", "proxy's user"},
		{"408", respondWith(408, ""), "", "408", "too slowly"},
		{"410", respondWith(410, ""), "", "410", "MCP endpoint"},
		{"415", respondWith(415, ""), "", "415", "request's headers"},
		{"421", respondWith(421, ""), "", "421", "host name"},
		{"429", respondWith(429, ""), "", "429", "too many"},
		{"429 with a time", respondWith(429, "", "Retry-After: 17"), "", "429", "Retry-After: 17"},
		{"500", respondWith(500, "oops"), "", "500 Internal Server Error: oops", "log of the server"},
		{"501", respondWith(501, ""), "", "501", "MCP endpoint"},
		{"503", respondWith(503, ""), "", "503", "behind this address runs"},
		{"a page", respondWith(200, "<html>", "Content-Type: text/html"), "", "an HTML page", "path is often /mcp"},
		{"a login page", respondWith(200, login, "Content-Type: text/html; charset=utf-8"), "", "an HTML page", "login page"},
		{"a text", respondWith(200, "hello", "Content-Type: text/plain"), "", `content of type "text/plain"`, "path is often /mcp"},
		{"other JSON", respondWith(200, `{"status":"ok"}`, "Content-Type: application/json"), "", "does not speak MCP", "path is often /mcp"},
		{"a redirect away", respondWith(307, "", "Location: https://elsewhere.example/mcp"), "", "another origin, https://elsewhere.example", "https://elsewhere.example in place"},
		{"a redirect to a login", respondWith(302, "", "Location: /login?next=x"), "", "302", "login page"},
		{"a redirect to a page", respondWith(302, "", "Location: /other?session=abcdefgh"), "", "302", "/other?… in place"},
	} {
		t.Run(test.name, func(t *testing.T) {
			u := startServer(t, test.handler).URL
			o := client.Options{Restart: client.Restart{Max: -1}, Logger: slog.New(slog.DiscardHandler)}
			if test.header != "" {
				o.HTTP.Header = func(context.Context) (http.Header, error) {
					return http.Header{"Authorization": {test.header}}, nil
				}
			}
			s := failedStep(t, Server{Target: u, Options: o})
			if s.Name != "HTTP" && test.name != "other JSON" {
				t.Errorf("the step is %s", s.Name)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)

			_, err := client.Dial(t.Context(), u, &o)
			d := Explain(err, Server{Target: u, Options: o})
			if d.Step != s.Name || d.Summary != s.Detail || d.Advice != s.Advice {
				t.Errorf("the diagnosis of the error is %+v", d)
			}
		})
	}
}

func TestNoSuchPathBelowMCP(t *testing.T) {
	s := failedStep(t, Server{Target: streamable.URL{URL: startServer(t, respondWith(404, "")).URL + "/mcp"}})
	checkContains(t, s.Advice, "nothing at this one")
}

// answerTo returns a handler that answers every method with a JSON-RPC error.
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
			u := startServer(t, test.target.(http.HandlerFunc)).URL
			s := failedStep(t, Server{Target: streamable.URL{URL: u}, Options: client.Options{Wire: client.Wire{Revision: test.revision}}})
			if s.Name != "handshake" {
				t.Errorf("the step is %s", s.Name)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)
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
		{"no scheme", "example.com/mcp?token=abcdefgh", `"example.com/mcp…" is not an http`, "https:// or http:// in front"},
		{"a user and no scheme", "me:secret-word@example.com/mcp", `"…@example.com/mcp" is not an http`, "in front"},
		{"a transport as scheme", "sse://example.com/mcp", "does not run over sse", "http or https"},
		{"no host for WebSocket", websocket.URL{URL: "wss:"}, "names no host", "https://host/path"},
		{"no host", "https:///mcp", "names no host", "https://host/path"},
		{"malformed", "https://user:hush-hush@exa mple.com/%zz", "malformed", "https://host/path"},
		{"malformed for streamable", streamable.URL{URL: "http://[::1"}, "malformed", "https://host/path"},
		{"no host for sse", sse.URL{URL: "http:"}, "names no host", "https://host/path"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := failedStep(t, Server{Target: test.target})
			if s.Name != "definition" {
				t.Errorf("the step is %s", s.Name)
			}
			checkContains(t, s.Detail, test.summary)
			checkContains(t, s.Advice, test.advice)
			if text := fmt.Sprint(s, s.Diagnosis, s.Err); strings.Contains(text, "secret-word") || strings.Contains(text, "hush-hush") || strings.Contains(text, "abcdefgh") {
				t.Errorf("a secret is told: %s", text)
			}
		})
	}
	s := failedStep(t, Server{Target: exampleServer(), Options: client.Options{Wire: client.Wire{Revision: "1999-01-01"}}})
	checkContains(t, s.Advice, "protocol revision")
}

func TestOtherTargets(t *testing.T) {
	for name, target := range map[string]any{"a handler": exampleServer(), "a dialer": memory.Dialer(exampleServer())} {
		t.Run(name, func(t *testing.T) {
			if got := joinNames(examineAll(t, Server{Target: target})); got != "definition > handshake > server > lists > end" {
				t.Error(got)
			}
		})
	}
	s := failedStep(t, Server{Target: 42})
	checkContains(t, s.Detail, "int is not a target")

	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	s = failedStep(t, Server{Target: io.ReadWriteCloser(here), Options: client.Options{Limits: client.Limits{Connect: 50 * time.Millisecond}}})
	checkContains(t, s.Detail, "no connection within 50ms")
}

// The examination continues after a list that fails.
func TestListsThatFail(t *testing.T) {
	s := exampleServer()
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodListPrompts {
				return nil, mcp.Errorf(-32603, "no prompts today")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	all := examineAll(t, Server{Target: s})
	step := stepNamed(t, all, "lists")
	if step.Status != Warning || all[len(all)-1].Name != "end" {
		t.Errorf("%s", joinNames(all))
	}
	checkContains(t, step.Detail, "2 tools, 1 resource, no list of prompts", "no prompts today")
	checkContains(t, step.Advice, "prompts")
}

func TestSecretsOfRequests(t *testing.T) {
	u := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no: "+r.Header.Get("Authorization")+r.Header.Get("X-Api-Key")+r.URL.Query().Get("token")+" "+r.URL.Query().Get("q"), 500)
	})).URL
	target := streamable.URL{URL: strings.Replace(u, "http://", "http://me:pass-word@", 1) + "/mcp?token=abcdef%2Bg&q=visible", Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer opensesame"}, "X-Api-Key": {"hush-hush"}}, nil
	}}
	all := examineAll(t, Server{Target: target, Mask: func(s string) string { return strings.ReplaceAll(s, "visible", "…") }})
	var said strings.Builder
	for _, s := range all {
		fmt.Fprintln(&said, s.Detail, s.Advice, s.Err, s.Diagnosis)
	}
	for _, secret := range []string{"opensesame", "hush-hush", "abcdef", "pass-word", "visible"} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("%s is told: %s", secret, said.String())
		}
	}
	checkContains(t, said.String(), "500 Internal Server Error")
}
