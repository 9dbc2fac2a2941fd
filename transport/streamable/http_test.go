package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

const (
	modernVersion = "2026-07-28"
	modernMeta    = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
)

func modernBody(method, params string) string {
	if params != "" {
		params = "," + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s%s}}`, method, modernMeta, params)
}

var listBody = modernBody("tools/list", "")

// modernFields are the header fields of a modern request.
func modernFields(method string, more ...string) []string {
	return append([]string{"Mcp-Protocol-Version", modernVersion, "Mcp-Method", method}, more...)
}

// The answers to single requests of the modern era (basic/transports/streamable-http, 2026-07-28).
func TestModernRequests(t *testing.T) {
	_, web := serve(t, testServer(nil))
	echo := modernBody("tools/call", `"name":"echo","arguments":{"message":"x"}`)
	route := modernBody("tools/call", `"name":"route","arguments":{"region":"eu","level":3}`)
	call := func(more ...string) []string { return modernFields("tools/call", more...) }
	for _, test := range []struct {
		name   string
		body   string
		fields []string
		status int
		code   int
	}{
		{"a list", listBody, modernFields("tools/list"), 200, 0},
		{"names of fields in any case", listBody, []string{"mcp-protocol-version", modernVersion, "MCP-METHOD", "tools/list"}, 200, 0},
		{"a call", echo, call("Mcp-Name", "echo"), 200, 0},
		{"a base64 name", echo, call("Mcp-Name", "=?base64?ZWNobw==?="), 200, 0},
		{"a base64 name with bad padding", echo, call("Mcp-Name", "=?base64?ZWNobw=?="), 400, -32020},
		{"another name", echo, call("Mcp-Name", "ask"), 400, -32020},
		{"a name in another case", echo, call("Mcp-Name", "Echo"), 400, -32020},
		{"no name", echo, call(), 400, -32020},
		{"two names", echo, call("Mcp-Name", "echo", "Mcp-Name", "echo"), 400, -32020},
		{"a prompt without its name", modernBody("prompts/get", `"name":"p"`), modernFields("prompts/get"), 400, -32020},
		{"a resource without its name", modernBody("resources/read", `"uri":"x://a"`), modernFields("resources/read"), 400, -32020},
		{"no method", listBody, []string{"Mcp-Protocol-Version", modernVersion}, 400, -32020},
		{"another method", listBody, modernFields("tools/call"), 400, -32020},
		{"no version header with a modern body", listBody, []string{"Mcp-Method", "tools/list"}, 400, -32020},
		{"two version headers", listBody, modernFields("tools/list", "Mcp-Protocol-Version", modernVersion), 400, -32020},
		{"a legacy version header with a modern body", listBody, []string{"Mcp-Protocol-Version", "2025-11-25", "Mcp-Method", "tools/list"}, 400, -32020},
		{"an unknown version", strings.ReplaceAll(listBody, modernVersion, "v999.0.0"), []string{"Mcp-Protocol-Version", "v999.0.0", "Mcp-Method", "tools/list"}, 400, -32022},
		{"no _meta", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{}}`, modernFields("tools/list"), 400, -32602},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, modernFields("tools/list"), 400, -32602},
		{"no capabilities", `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, modernFields("tools/list"), 400, -32602},
		{"initialize", modernBody("initialize", ""), modernFields("initialize"), 404, -32601},
		{"ping", modernBody("ping", ""), modernFields("ping"), 404, -32601},
		{"an unknown method", modernBody("a/b", ""), modernFields("a/b"), 404, -32601},
		{"a session id is ignored", listBody, modernFields("tools/list", "Mcp-Session-Id", "x"), 200, 0},
		{"a missing capability", modernBody("tools/call", `"name":"ask","arguments":{}`), call("Mcp-Name", "ask"), 400, -32021},
		{"parameters", route, call("Mcp-Name", "route", "Mcp-Param-Region", "eu", "Mcp-Param-Level", "3"), 200, 0},
		{"parameters by their number", route, call("Mcp-Name", "route", "Mcp-Param-Region", "eu", "Mcp-Param-Level", "3.0"), 200, 0},
		{"a missing parameter", route, call("Mcp-Name", "route", "Mcp-Param-Region", "eu"), 400, -32020},
		{"another parameter", route, call("Mcp-Name", "route", "Mcp-Param-Region", "us", "Mcp-Param-Level", "3"), 400, -32020},
		{"a notification", `{"jsonrpc":"2.0","method":"notifications/x","params":{` + modernMeta + `}}`, modernFields("notifications/x"), 202, 0},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{"Mcp-Protocol-Version", modernVersion}, 400, -32600},
		{"a batch", "[" + listBody + "]", modernFields("tools/list"), 400, -32600},
		{"a null id", strings.Replace(listBody, `"id":7`, `"id":null`, 1), modernFields("tools/list"), 400, -32600},
		{"neither version nor session", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, nil, 400, -32600},
		{"an unknown session", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{"Mcp-Session-Id", "x"}, 404, -32600},
		{"a session of a revision that is not spoken", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{"Mcp-Session-Id", "x", "Mcp-Protocol-Version", "2024-01-01"}, 400, -32600},
		{"a notification without a session", `{"jsonrpc":"2.0","method":"notifications/x"}`, nil, 400, -32600},
		{"no JSON", `{"jsonrpc":`, modernFields("tools/list"), 400, -32700},
		{"an empty body", ``, modernFields("tools/list"), 400, -32700},
		{"invalid UTF-8", strings.Replace(listBody, "tools", "\xff", 1), modernFields("tools/list"), 400, -32700},
		{"another content type", listBody, modernFields("tools/list", "Content-Type", "", "Content-Type", "text/plain"), 415, -32600},
		{"no content type", listBody, modernFields("tools/list", "Content-Type", ""), 415, -32600},
		{"a content type with parameters", listBody, modernFields("tools/list", "Content-Type", "", "Content-Type", "application/json; charset=utf-8"), 200, 0},
		{"nothing acceptable", listBody, modernFields("tools/list", "Accept", "", "Accept", "text/html"), 406, -32600},
		{"JSON alone acceptable", listBody, modernFields("tools/list", "Accept", "", "Accept", "application/json"), 200, 0},
		{"anything acceptable", listBody, modernFields("tools/list", "Accept", "", "Accept", "*/*"), 200, 0},
		{"no Accept", listBody, modernFields("tools/list", "Accept", ""), 200, 0},
		{"too large", listBody[:len(listBody)-1] + strings.Repeat(" ", streamable.DefaultMaxBody) + "}", modernFields("tools/list"), 413, -32600},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := send(t, http.MethodPost, web.URL+"/mcp", test.body, test.fields...)
			if got.status != test.status || code(t, got.body) != test.code {
				t.Errorf("got status %d, code %d, want %d, %d: %s", got.status, code(t, got.body), test.status, test.code, got.body)
			}
			if got.status == http.StatusAccepted && got.body != "" {
				t.Errorf("202 has the body %q", got.body)
			}
			if media := got.header.Get("Content-Type"); got.body != "" && media != "application/json" {
				t.Errorf("the media type is %q", media)
			}
			if id := got.header.Get("Mcp-Session-Id"); id != "" {
				t.Errorf("a session was opened: %s", id)
			}
			if has, want := strings.Contains(got.body, `"id":7`), carriesID(test.name, test.code); has != want && test.code != 0 {
				t.Errorf("the error has the id of the request: %v, want %v: %s", has, want, got.body)
			}
		})
	}
}

// Mcp-Name mirrors the field that an extension names for a method, also if only the handler lists
// the extension.
func TestExtensionNames(t *testing.T) {
	t.Parallel()
	extension := mcp.Extension{
		ID: "com.example/jobs", NameFields: map[string]string{"jobs/get": "jobId"},
	}
	body := modernBody("jobs/get", `"jobId":"one"`)
	for name, test := range map[string]struct {
		handler mcp.Handler
		opts    streamable.Options
	}{
		"the handler's": {handler: extended{[]mcp.Extension{extension}}},
		"the options'":  {handler: extended{}, opts: streamable.Options{ServerOptions: transport.ServerOptions{Extensions: []mcp.Extension{extension}}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, web := serve(t, test.handler, test.opts)
			for header, want := range map[string]int{"one": 200, "two": 400} {
				got := send(t, http.MethodPost, web.URL+"/mcp", body, modernFields("jobs/get", "Mcp-Name", header)...)
				if got.status != want || want == 400 && code(t, got.body) != mcp.CodeHeaderMismatch {
					t.Errorf("Mcp-Name %s: got %d, want %d: %s", header, got.status, want, got.body)
				}
			}
		})
	}
}

// extended answers each request and lists extensions.
type extended struct{ extensions []mcp.Extension }

func (e extended) Extensions() []mcp.Extension { return e.extensions }

func (e extended) ServeMCP(context.Context, *mcp.Request) (*mcp.Result, error) {
	return &mcp.Result{}, nil
}

// carriesID reports whether an error with the code has the id of its request: the id was read, and
// the message is a request.
func carriesID(name string, code int) bool {
	switch name {
	case "neither version nor session", "an unknown session", "a session of a revision that is not spoken":
		return true
	}
	return code != 0 && code != -32700 && code != -32600
}

// A client that accepts only event streams must get one.
func TestStreamAlone(t *testing.T) {
	_, web := serve(t, testServer(nil))
	got := send(t, http.MethodPost, web.URL+"/mcp", listBody, modernFields("tools/list", "Accept", "", "Accept", "text/event-stream")...)
	if got.status != 200 || got.header.Get("Content-Type") != "text/event-stream" || !strings.Contains(got.body, "data: {") && !strings.Contains(got.body, "data:{") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	for name, want := range map[string]string{"X-Accel-Buffering": "no", "Cache-Control": "no-store"} {
		if !strings.Contains(got.header.Get(name), want) {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
	asking := modernBody("tools/call", `"name":"ask","arguments":{}`)
	got = send(t, http.MethodPost, web.URL+"/mcp", asking, modernFields("tools/call", "Mcp-Name", "ask", "Accept", "", "Accept", "text/event-stream")...)
	if got.status != 400 || code(t, got.body) != mcp.CodeMissingCapability {
		t.Errorf("a missing capability: %d %s", got.status, got.body)
	}
}

// A legacy client learns from a server without sessions which revisions it speaks.
func TestARefusedHandshakeNamesTheRevisions(t *testing.T) {
	_, web := serve(t, testServer(nil), streamable.Options{Sessions: streamable.SessionOptions{Disabled: true}})
	initialize := `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	got := send(t, http.MethodPost, web.URL+"/mcp", initialize)
	const message = `Unsupported protocol version \"2025-06-18\": this server speaks [2026-07-28]`
	if got.status != 400 || code(t, got.body) != mcp.CodeUnsupportedProtocolVersion || !strings.Contains(got.body, message) || !strings.Contains(got.body, `"id":7`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestMethods(t *testing.T) {
	_, web := serve(t, testServer(nil))
	_, modern := serve(t, testServer(nil), streamable.Options{Sessions: streamable.SessionOptions{Disabled: true}})
	for _, test := range []struct {
		url, method string
		fields      []string
		status      int
	}{
		{web.URL, "GET", []string{"Mcp-Protocol-Version", modernVersion}, 405},
		{web.URL, "DELETE", []string{"Mcp-Protocol-Version", modernVersion}, 405},
		{web.URL, "PUT", nil, 405},
		{web.URL, "GET", []string{"Accept", "text/event-stream"}, 400},
		{web.URL, "GET", []string{"Accept", "text/html"}, 406},
		{web.URL, "DELETE", nil, 400},
		{web.URL, "GET", []string{"Accept", "text/event-stream", "Mcp-Session-Id", "forged"}, 404},
		{web.URL, "DELETE", []string{"Mcp-Session-Id", "forged"}, 404},
		{modern.URL, "GET", []string{"Accept", "text/event-stream"}, 405},
		{modern.URL, "DELETE", nil, 405},
		{modern.URL, "POST", nil, 400},
	} {
		t.Run(test.method+strings.Join(test.fields, " "), func(t *testing.T) {
			got := send(t, test.method, test.url+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, test.fields...)
			if got.status != test.status {
				t.Errorf("got %d, want %d: %s", got.status, test.status, got.body)
			}
			if test.status == 405 && got.header.Get("Allow") == "" {
				t.Error("the answer does not say what is allowed")
			}
		})
	}
	got := send(t, http.MethodPost, modern.URL+"/mcp", listBody, "Mcp-Method", "tools/list")
	if got.status != 400 || code(t, got.body) != mcp.CodeHeaderMismatch {
		t.Errorf("without a version: %d %s", got.status, got.body)
	}
}

// A loopback address accepts only loopback hosts, and an Origin must be the same host or allowed.
func TestGuard(t *testing.T) {
	allowed := streamable.Guard{AllowOrigin: func(origin string) bool { return origin == "https://app.example.com" }}
	_, web := serve(t, testServer(nil), streamable.Options{Guard: allowed})
	_, named := serve(t, testServer(nil), streamable.Options{Guard: streamable.Guard{Hosts: []string{"mcp.example.com"}}})
	host := strings.TrimPrefix(web.URL, "http://")
	for _, test := range []struct {
		name   string
		url    string
		fields []string
		status int
	}{
		{"its own name", web.URL, nil, 200},
		{"localhost", web.URL, []string{"Host", "localhost:1"}, 200},
		{"IPv6", web.URL, []string{"Host", "[::1]:1"}, 200},
		{"another host", web.URL, []string{"Host", "evil.example.com"}, 403},
		{"a host that begins well", web.URL, []string{"Host", "127.0.0.1.evil.example.com"}, 403},
		{"its own origin", web.URL, []string{"Origin", "http://" + host}, 200},
		{"another local origin", web.URL, []string{"Origin", "http://localhost:6274"}, 200},
		{"another origin", web.URL, []string{"Origin", "http://evil.example.com"}, 403},
		{"no origin at all", web.URL, []string{"Origin", "null"}, 403},
		{"an allowed origin", web.URL, []string{"Origin", "https://app.example.com"}, 200},
		{"two origins", web.URL, []string{"Origin", "https://app.example.com", "Origin", "http://evil.example.com"}, 403},
		{"a page of elsewhere", web.URL, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page of here", web.URL, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"a listed host", named.URL, []string{"Host", "mcp.example.com"}, 200},
		{"a listed host with a port", named.URL, []string{"Host", "mcp.example.com:8443"}, 200},
		{"a host that is not listed", named.URL, nil, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := send(t, "POST", test.url+"/mcp", listBody, append(modernFields("tools/list"), test.fields...)...)
			if got.status != test.status {
				t.Errorf("got %d, want %d: %s", got.status, test.status, got.body)
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	_, web := serve(t, testServer(nil), streamable.Options{Guard: streamable.Guard{AllowOrigin: func(string) bool { return true }}})
	origin := "https://app.example.com"
	got := send(t, "OPTIONS", web.URL+"/mcp", "", "Origin", origin, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "content-type, mcp-param-region")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Headers": "mcp-param-region", "Access-Control-Allow-Methods": "DELETE",
	} {
		if !strings.Contains(got.header.Get(name), want) {
			t.Errorf("%s is %q", name, got.header.Get(name))
		}
	}
	if got.status != http.StatusNoContent {
		t.Errorf("status %d", got.status)
	}
	got = send(t, "POST", web.URL+"/mcp", listBody, append(modernFields("tools/list"), "Origin", origin)...)
	if got.header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("%v", got.header)
	}
	refused := send(t, "OPTIONS", web.URL+"/mcp", "", "Origin", "null", "Host", "evil.example.com", "Access-Control-Request-Method", "POST")
	if refused.status != http.StatusForbidden {
		t.Errorf("a preflight for a foreign host: %d", refused.status)
	}
}
