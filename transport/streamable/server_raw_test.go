package streamable_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// rawClient writes requests as text onto a connection, so that they may break the rules of HTTP.
type rawClient struct {
	t    testing.TB
	conn *net.TCPConn
	in   *bufio.Reader
}

func dialRaw(t testing.TB, web *httptest.Server) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(polltest.Limit))
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10) // so that the server must buffer the rest
	return &rawClient{t, conn.(*net.TCPConn), bufio.NewReader(conn)}
}

func (c *rawClient) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// read reads a response with its body.
func (c *rawClient) read() answer {
	c.t.Helper()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// awaitClose reports whether the server closes the connection.
func (c *rawClient) awaitClose() bool {
	_ = c.conn.SetReadDeadline(time.Now().Add(polltest.Limit))
	_, err := io.Copy(io.Discard, c.in)
	timeout, ok := err.(net.Error)
	return !ok || !timeout.Timeout()
}

// readUntil reads up to a line with a prefix and returns the rest of that line.
func (c *rawClient) readUntil(prefix string) string {
	c.t.Helper()
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.t.Fatalf("before a line that begins with %q: %v", prefix, err)
		}
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
}

// head returns the head of a request, with the common fields and further lines.
func head(method string, more ...string) string {
	fields := ""
	for _, line := range more {
		fields += line + "\r\n"
	}
	return method + " /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" + fields + "\r\n"
}

func length(n int) string { return fmt.Sprintf("Content-Length: %d", n) }

// modernLines returns the header lines of a modern request.
func modernLines(method string, more ...string) []string {
	return append([]string{"MCP-Protocol-Version: " + modernVersion, "Mcp-Method: " + method}, more...)
}

// modernCall returns a modern call of a tool without arguments.
func modernCall(tool string) string {
	body := modernBody("tools/call", fmt.Sprintf(`"name":%q,"arguments":{}`, tool))
	return head("POST", modernLines("tools/call", "Mcp-Name: "+tool, length(len(body)))...) + body
}

func listRequest() string {
	return head("POST", modernLines("tools/list", length(len(listBody)))...) + listBody
}

// A body that arrives too slowly is refused after BodyTimeout. The timeout must not bound the call,
// nor an idle connection.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	const bodyTimeout = 2 * time.Second
	gate := make(chan struct{})
	_, web := serve(t, testServer(gate), streamable.Options{BodyTimeout: bodyTimeout})
	slow := dialRaw(t, web)
	slow.write(head("POST", modernLines("tools/list", length(len(listBody)))...))
	begun := time.Now()
	go func() {
		for i := range len(listBody) {
			if _, err := io.WriteString(slow.conn, listBody[i:i+1]); err != nil {
				return
			}
			time.Sleep(bodyTimeout / 10)
		}
	}()
	if got := slow.read(); got.status < 400 || got.status >= 500 {
		t.Errorf("a slow body: %d %s", got.status, got.body)
	}
	if took := time.Since(begun); took < bodyTimeout {
		t.Errorf("a slow body was refused after %v, want at least %v", took, bodyTimeout)
	}
	if !slow.awaitClose() {
		t.Error("the connection is still open")
	}
	awaitTimeout := func() { // waits until the body of another connection is refused
		late := dialRaw(t, web)
		late.write(head("POST", modernLines("tools/list", length(len(listBody)))...))
		late.read()
	}
	quick := dialRaw(t, web)
	quick.write(modernCall("wait"))
	awaitTimeout()
	openGate(t, gate)
	if got := quick.read(); got.status != 200 || !strings.Contains(got.body, "let go") {
		t.Errorf("a call that takes longer than a body may: %d %s", got.status, got.body)
	}
	awaitTimeout()
	quick.write(listRequest())
	if got := quick.read(); got.status != 200 {
		t.Errorf("a connection that was idle for longer than a body may take: %d %s", got.status, got.body)
	}
}

// The answers to broken bodies, and whether the connection can be reused.
func TestBrokenBodies(t *testing.T) {
	const most = 1000
	_, web := serve(t, testServer(nil), streamable.Options{MaxBody: most, BodyTimeout: time.Second})
	lines := func(more ...string) string { return head("POST", modernLines("tools/list", more...)...) }
	chunked := func(body string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(body), body) }
	padded := listBody[:len(listBody)-1] + strings.Repeat(" ", most-len(listBody)) + "}"
	for _, test := range []struct {
		name   string
		text   string
		half   bool // the client ends its half of the connection
		status int
		ends   bool
	}{
		{"whole", lines(length(len(listBody))) + listBody, false, 200, false},
		{"exactly MaxBody", lines(length(most)) + padded, false, 200, false},
		{"chunked", lines("Transfer-Encoding: chunked") + chunked(listBody[:10]) + chunked(listBody[10:]) + "0\r\n\r\n", false, 200, false},
		{"chunked, exactly MaxBody", lines("Transfer-Encoding: chunked") + chunked(padded) + "0\r\n\r\n", false, 200, false},
		{"a byte too large", lines(length(most+1)) + padded + " ", false, 413, true},
		{"too large, without the body", lines(length(1 << 40)), false, 413, true},
		{"too large, with Expect: 100-continue", lines(length(1<<40), "Expect: 100-continue"), false, 413, true},
		{"chunked, and too large", lines("Transfer-Encoding: chunked") + chunked(padded) + chunked(" "), false, 413, true},
		{"chunked without end", lines("Transfer-Encoding: chunked") + chunked(padded) + strings.Repeat(chunked(strings.Repeat(" ", 1<<10)), 100), false, 413, true},
		{"shorter than its Content-Length", lines(length(len(listBody)+1)) + listBody, true, 400, true},
		{"longer than its Content-Length", lines(length(len(listBody)-1)) + listBody, true, 400, true},
		{"chunked, without the last chunk", lines("Transfer-Encoding: chunked") + chunked(listBody), true, 400, true},
		{"chunked, with a malformed chunk", lines("Transfer-Encoding: chunked") + "zz\r\n" + listBody, true, 400, true},
		{"a negative length", lines("Content-Length: -1") + listBody, true, 400, true},
		{"two lengths", lines(length(len(listBody)), length(3)) + listBody, true, 400, true},
		{"an unknown encoding", lines("Transfer-Encoding: gzip") + listBody, true, 501, true},
		{"no length", lines() + listBody, true, 400, true},
		{"a head without end", strings.TrimSuffix(lines(), "\r\n"), true, 400, true},
		{"a head that is too large", lines("X-Large: " + strings.Repeat("x", 2<<20)), false, 431, true},
		{"rubbish", "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", false, 400, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialRaw(t, web)
			go func() { // in a goroutine, because the server need not read everything
				_, _ = io.WriteString(c.conn, test.text)
				if test.half {
					_ = c.conn.CloseWrite()
				}
			}()
			if got := c.read(); got.status != test.status {
				t.Errorf("got %d, want %d: %s", got.status, test.status, got.body)
			}
			if test.ends {
				if !c.awaitClose() {
					t.Error("the connection is still open")
				}
				return
			}
			c.write(listRequest())
			if got := c.read(); got.status != 200 {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
		})
	}
}

// A header field that occurs twice must be refused, because a proxy may have used either value.
// Accept is a list, so it may occur twice.
func TestDuplicateFields(t *testing.T) {
	_, web := serve(t, testServer(nil))
	id := open(t, web.URL+"/mcp", mcp.Revision20251125)
	session := []string{"Mcp-Session-Id: " + id, "MCP-Protocol-Version: 2025-11-25"}
	echo := modernBody("tools/call", `"name":"echo","arguments":{"message":"x"}`)
	route := modernBody("tools/call", `"name":"route","arguments":{"region":"eu"}`)
	for _, test := range []struct {
		name   string
		method string
		body   string
		lines  []string
		status int
	}{
		{"Accept in two lines", "POST", listBody, modernLines("tools/list", "Accept: text/html"), 200},
		{"two methods", "POST", listBody, modernLines("tools/list", "Mcp-Method: tools/list"), 400},
		{"two methods in one field", "POST", listBody, []string{"MCP-Protocol-Version: " + modernVersion, "Mcp-Method: tools/list, tools/list"}, 400},
		{"two versions", "POST", listBody, modernLines("tools/list", "mcp-protocol-version: 2025-11-25"), 400},
		{"two names", "POST", echo, modernLines("tools/call", "Mcp-Name: echo", "Mcp-Name: wait"), 400},
		{"two parameters", "POST", route, modernLines("tools/call", "Mcp-Name: route", "Mcp-Param-Region: eu", "Mcp-Param-Region: us"), 400},
		{"two hosts", "POST", listBody, modernLines("tools/list", "Host: evil.example.com"), 400},
		{"two origins", "POST", listBody, modernLines("tools/list", "Origin: http://localhost", "Origin: http://evil.example.com"), 403},
		{"two sessions", "POST", pingBody, append([]string{"Mcp-Session-Id: " + id}, session...), 400},
		{"two sessions for DELETE", "DELETE", "", append([]string{"Mcp-Session-Id: " + id}, session...), 400},
		{"two versions in a session", "POST", pingBody, append([]string{"MCP-Protocol-Version: 1999-01-01"}, session...), 400},
		{"an empty session", "POST", pingBody, []string{"Mcp-Session-Id:", "MCP-Protocol-Version: 2025-11-25"}, 400},
		{"white space around a session", "POST", pingBody, []string{"Mcp-Session-Id: \t" + id + " \t", "MCP-Protocol-Version: 2025-11-25"}, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialRaw(t, web)
			c.write(head(test.method, append(test.lines, length(len(test.body)))...) + test.body)
			if got := c.read(); got.status != test.status {
				t.Errorf("got %d, want %d: %s", got.status, test.status, got.body)
			}
		})
	}
}

// Pipelined requests must be answered in order.
func TestPipelining(t *testing.T) {
	gate := make(chan struct{}, 1)
	_, web := serve(t, testServer(gate))
	c := dialRaw(t, web)
	c.write(modernCall("wait") + listRequest() + head("GET", "MCP-Protocol-Version: "+modernVersion) + listRequest())
	openGate(t, gate)
	for i, want := range []struct {
		status int
		says   string
	}{{200, "let go"}, {200, "echo"}, {405, "GET"}, {200, "echo"}} {
		if got := c.read(); got.status != want.status || !strings.Contains(got.body, want.says) {
			t.Errorf("answer %d: %d %s", i, got.status, got.body)
		}
	}
}

func TestOtherMethods(t *testing.T) {
	_, web := serve(t, testServer(nil))
	for _, method := range []string{"HEAD", "OPTIONS", "PATCH", "PUT", "TRACE", "post", "PROPFIND"} {
		t.Run(method, func(t *testing.T) {
			c := dialRaw(t, web)
			c.write(head(method, length(2)) + "{}")
			resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST, GET, DELETE" || (len(body) == 0) != (method == "HEAD") {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
			}
			c.write(listRequest())
			if got := c.read(); got.status != 200 {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
		})
	}
}

// HTTP/1.0 has no chunks, so a stream must end with its connection.
func TestHTTP10(t *testing.T) {
	_, web := serve(t, testServer(nil))
	for _, accept := range []string{"application/json", "text/event-stream"} {
		c := dialRaw(t, web)
		c.write(fmt.Sprintf("POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: %s\r\n%s\r\n%s\r\n\r\n%s",
			accept, strings.Join(modernLines("tools/list"), "\r\n"), length(len(listBody)), listBody))
		if got := c.read(); got.status != 200 || !strings.Contains(got.body, `"echo"`) || got.header.Get("Content-Type") != accept {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
}
