//go:build linux

package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// Attack 1: a page makes its own host name lead to this machine (DNS rebinding), and even knows the
// token. Expected: refused, as the request does not name this machine.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	_, port, _ := strings.Cut(v.address(), ":")
	for _, host := range []string{"evil.com", "evil.com:" + port, "127.0.0.1.evil.com", "localhost.evil.com", "127.1", "evil.com@127.0.0.1", "localhost, evil.com",
		"0x7f000001.evil.com", "[::1].evil.com", ""} {
		for _, path := range []string{"/mcp", "/sse", "/ws", "/status.json", "/mcp/every"} {
			answer := v.send(v.head("POST "+path+" HTTP/1.1", "Host: "+host, length(echoBody)) + echoBody)
			if !strings.HasPrefix(answer, "HTTP/1.1 403") && !strings.HasPrefix(answer, "HTTP/1.1 400") {
				t.Errorf("Host %q at %s: %.200s", host, path, answer)
			}
		}
	}
	for name, text := range map[string]string{
		"absolute form": v.head("POST http://evil.com/mcp HTTP/1.1", length(echoBody)) + echoBody,
		"HTTP/1.0":      v.head("POST /mcp HTTP/1.0", "Host: evil.com", length(echoBody)) + echoBody,
		"two Hosts":     v.head("POST /mcp HTTP/1.1", length(echoBody), "Host: evil.com", "Host: "+v.address()) + echoBody,
		"forwarded":     v.head("POST /mcp HTTP/1.1", "Host: evil.com", "X-Forwarded-Host: localhost", "Forwarded: host=localhost", length(echoBody)) + echoBody,
	} {
		if answer := v.send(text); strings.Contains(answer, "xyzzy") || !strings.HasPrefix(answer, "HTTP/1.") || strings.Contains(answer[:15], " 200") {
			t.Errorf("%s: %.200s", name, answer)
		}
	}
}

// Attacks 2, 3 and 7: pages of other origins, also of other ports of this machine, send requests
// and preflights with the token. Expected: 403, and no CORS header that lets a page read the
// answer.
func TestForeignOrigins(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, origin := range []string{"http://evil.com", "null", "", "chrome-extension://abcdefgh", "http://" + v.address() + "@evil.com", "http://evil.com#@" + v.address(),
		"http://evil.localhost", "http://localhost:3000", "http://127.0.0.1:9999", "https://" + v.address() + ".evil.com", "http://" + v.address() + ".evil.com"} {
		for _, method := range []string{"POST", "OPTIONS", "GET", "DELETE"} {
			code, text, header := v.exchange(method, "/mcp", echoBody, v.echoFields("Origin", origin, "Access-Control-Request-Method", "POST")...)
			if code != http.StatusForbidden || strings.Contains(text, "xyzzy") || header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s from %q: %d %s %v", method, origin, code, text, header)
			}
		}
	}
	code, text, _ := v.exchange("POST", "/mcp", echoBody, v.echoFields("Origin", v.url, "Origin", "http://evil.com")...)
	if code != http.StatusForbidden {
		t.Errorf("two origins: %d %s", code, text)
	}
}

// Attacks 4, 5 and 6: a page of another site sends a form, or makes the browser fetch an address,
// so that no Origin is sent. Expected: refused by Content-Type or Sec-Fetch-Site.
func TestRequestsOfForms(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		fields := v.echoFields()
		fields[3] = kind
		if code, text, _ := v.exchange("POST", "/mcp", echoBody, fields...); code != http.StatusUnsupportedMediaType {
			t.Errorf("Content-Type %q: %d %s", kind, code, text)
		}
	}
	for _, site := range []string{"cross-site", "same-site", "anything"} {
		for _, request := range []string{"POST /mcp", "GET /status.json", "GET /sse", "GET /mcp", "GET /ws", "GET /client/ci/ws"} {
			method, path, _ := strings.Cut(request, " ")
			if code, text, _ := v.exchange(method, path, echoBody, v.echoFields("Sec-Fetch-Site", site)...); code != http.StatusForbidden {
				t.Errorf("%s with Sec-Fetch-Site %s: %d %s", request, site, code, text)
			}
		}
	}
}

// Attack 72: guesses and misplaced copies of the token. Expected: 401, and the answer holds no part
// of the token.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, sent := range []string{"", "Bearer", "Bearer ", "Bearer x", "Bearer " + v.token[:len(v.token)-1], "Bearer " + v.token + "x", "Bearer " + strings.ToUpper(v.token),
		"Basic " + v.token, v.token, "Bearer " + v.token + ", Bearer x", "Bearer Bearer " + v.token, "Bearer \"" + v.token + "\"", "Bearer token-of-ci token-of-other"} {
		code, text, header := v.exchange("POST", "/mcp", echoBody, append([]string{"Authorization", sent}, v.echoFields()[2:]...)...)
		if code != http.StatusUnauthorized || strings.Contains(text, v.token) || strings.Contains(header.Get("WWW-Authenticate"), "resource_metadata") {
			t.Errorf("Authorization %.20q…: %d %s %v", sent, code, text, header)
		}
	}
	for name, fields := range map[string][]string{
		"a cookie": {"Cookie", "token=" + v.token + "; Authorization=Bearer " + v.token}, "another field": {"X-Authorization", v.bearer(), "Proxy-Authorization", v.bearer()},
		"a subprotocol": {"Sec-WebSocket-Protocol", "mcp, bearer." + v.token},
	} {
		for _, path := range []string{"/mcp?token=" + v.token + "&access_token=" + v.token, "/ws?token=" + v.token} {
			if code, text, _ := v.exchange("GET", path, "", fields...); code != http.StatusUnauthorized {
				t.Errorf("the token as %s: %d %s", name, code, text)
			}
		}
	}
}

// Attack 74: a client with a token of its own spells paths so that they reach another client's
// gateway, a single server or the status. Expected: never an answer with status 200.
func TestPathsOfOtherClients(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, path := range []string{"/client/other/mcp", "/client/%6fther/mcp", "/client/ci/../other/mcp", "/client/ci/mcp/../../other/mcp", "/client/ci%2f..%2fother/mcp",
		"//client/other/mcp", "/client//other/mcp", "/client/ci/mcp/..", "/mcp/../status.json", "/mcp/every", "/mcp/every/", "/mcp//every", "/status.json", "/STATUS.JSON",
		"/client/other/ws", "/ws/every", "/client/ci/mcp/every", "/client/ci/mcp;other", "/mcp/%2e%2e/client/other/mcp", "/client/\xffi/mcp", "/client/CI/mcp"} {
		answer := v.send(v.head("POST "+path+" HTTP/1.1", "Authorization: Bearer token-of-ci", length(echoBody)) + echoBody)
		if strings.Contains(answer, "xyzzy") || !strings.HasPrefix(answer, "HTTP/1.1 40") {
			t.Errorf("%s: %.300s", path, answer)
		}
	}
	if answer := v.send(v.head("POST /client/ci/mcp HTTP/1.1", "Authorization: Bearer token-of-ci", length(echoBody)) + echoBody); !strings.Contains(answer, "xyzzy") {
		t.Errorf("its own path: %s", answer)
	}
}

// Attack 12: a proxy and the gateway would see the end of a request at different places. Expected:
// the hidden call never runs, and the connection ends.
func TestSmuggledRequests(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	hidden := v.head("POST /mcp HTTP/1.1", length(echoBody)) + echoBody
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(hidden), hidden)
	for name, text := range map[string]string{
		"chunks with a tab":  v.head("POST /mcp HTTP/1.1", "Authorization: none", "Content-Length: 4", "Transfer-Encoding:\tchunked ") + chunk + "0\r\n\r\n",
		"two encodings":      v.head("POST /mcp HTTP/1.1", "Content-Length: 4", "Transfer-Encoding: identity", "Transfer-Encoding: chunked") + chunk + "0\r\n\r\n",
		"two lengths":        v.head("POST /mcp HTTP/1.1", "Content-Length: 2", length(hidden)) + "{}" + hidden,
		"lengths in a list":  v.head("POST /mcp HTTP/1.1", "Content-Length: 2, 2") + "{}" + hidden,
		"a space":            v.head("POST /mcp HTTP/1.1", "Content-Length : 2") + "{}" + hidden,
		"a plus":             v.head("POST /mcp HTTP/1.1", "Content-Length: +2") + "{}" + hidden,
		"a minus":            v.head("POST /mcp HTTP/1.1", "Content-Length: -2") + "{}" + hidden,
		"hexadecimal":        v.head("POST /mcp HTTP/1.1", "Content-Length: 0x2") + "{}" + hidden,
		"a folded field":     v.head("POST /mcp HTTP/1.1", "X-Fold: a\r\n Content-Length: 2") + "{}" + hidden,
		"a NUL":              v.head("POST /mcp HTTP/1.1", "X-Nul: a\x00b", "Content-Length: 2") + "{}" + hidden,
		"a bare CR":          v.head("POST /mcp HTTP/1.1", "X-Cr: a\rTransfer-Encoding: chunked", "Content-Length: 2") + "{}" + hidden,
		"chunk sizes":        v.head("POST /mcp HTTP/1.1", "Transfer-Encoding: chunked") + "-1\r\n\r\n" + hidden,
		"a huge chunk":       v.head("POST /mcp HTTP/1.1", "Transfer-Encoding: chunked") + "ffffffffffffffff1\r\n\r\n" + hidden,
		"a header too large": v.head("POST /mcp HTTP/1.1", "X-Large: "+strings.Repeat("x", 1_500_000), "Content-Length: 2") + "{}" + hidden,
		"HTTP/2":             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
	} {
		if answer := v.send(text); strings.Contains(answer, "xyzzy") || !strings.Contains(answer, "HTTP/1.1 4") && !strings.Contains(answer, "HTTP/1.1 5") {
			t.Errorf("%s: %.400s", name, answer)
		}
	}
}

// Attack 13: fields that mirror the message differ from it or are not text, to get past a proxy
// that reads them. Expected: 400, and the call does not run.
func TestForgedMirrors(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, name := range []string{"every__add", "", "every__echo2", "EVERY__ECHO", "every__\xe9cho", "=?base64?!!!?=", "=?base64?" + strings.Repeat("A", 64<<10) + "?=", "every__echo\x00"} {
		answer := v.send(v.head("POST /mcp HTTP/1.1", "Mcp-Name: "+name, length(echoBody)) + echoBody)
		if !strings.HasPrefix(answer, "HTTP/1.1 400") || strings.Contains(answer, `"text":"xyzzy"`) {
			t.Errorf("Mcp-Name %.40q: %.300s", name, answer)
		}
	}
	for _, field := range []string{"Mcp-Method: tools/list", "Mcp-Method: ", "Mcp-Method: TOOLS/CALL", "MCP-Protocol-Version: 2025-11-25", "MCP-Protocol-Version: 2999-01-01"} {
		answer := v.send(v.head("POST /mcp HTTP/1.1", field, length(echoBody)) + echoBody)
		if !strings.HasPrefix(answer, "HTTP/1.1 400") || strings.Contains(answer, `"text":"xyzzy"`) {
			t.Errorf("%s: %.300s", field, answer)
		}
	}
}

// Attack 14: clients that send their head a byte at a time, or nothing. Expected: each is
// disconnected, and others are served meanwhile.
func TestSlowHeads(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	ended := make(chan error, 40)
	for range cap(ended) {
		conn, err := net.Dial("tcp", v.address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(polltest.Limit))
			_, err := io.Copy(io.Discard, conn)
			ended <- err
		}()
	}
	v.checkServes()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Attack 11: servers, tools and clients have names with markup. Expected: the console is a
// fixed document that holds no data, and data are JSON.
func TestMarkupInNames(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	const markup = "<img src=x onerror=alert(1)>"
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, %q: {"command": "</script>%s"}}}`, builtIn("everything"), "x"+markup, markup))
	v.start()
	code, page, header := v.exchange("GET", "/console/", "")
	if code != http.StatusOK || strings.Contains(page, "onerror") || strings.Contains(page, "innerHTML") || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("%d %v\n%s", code, header, page)
	}
	if code, _, header := v.exchange("GET", "/status.json", "", "Authorization", v.bearer()); code != http.StatusOK || header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", code, header)
	}
	for _, path := range []string{"/" + markup, "/mcp/" + markup, "/client/" + markup + "/mcp"} {
		answer := v.send(v.head("GET " + strings.ReplaceAll(path, " ", "%20") + " HTTP/1.1"))
		if strings.Contains(answer, "<img") && strings.Contains(answer, "text/html") {
			t.Errorf("%s: %s", path, answer)
		}
	}
}

// Attack 20: a client resumes a stream with the event id of another session, a forged one and a
// huge one. Expected: no event of the other session arrives.
func TestForeignEventIDs(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	open := func() string {
		code, text, header := v.exchange("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
			"Authorization", v.bearer(), "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
		return header.Get("Mcp-Session-Id")
	}
	call := func(session string, fields ...string) (int, string) {
		body := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"every__test_tool_with_progress","arguments":{},"_meta":{"progressToken":"xyzzy"}}}`
		code, text, _ := v.exchange("POST", "/mcp", body, append([]string{"Authorization", v.bearer(), "Content-Type", "application/json",
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18", "Mcp-Session-Id", session}, fields...)...)
		return code, text
	}
	mine, theirs := open(), open()
	_, text := call(theirs)
	id := ""
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if found, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			id = found
			break
		}
	}
	if id == "" || !strings.Contains(text, "xyzzy") {
		t.Fatalf("the stream has no event ids: %s", text)
	}
	for _, last := range []string{id, "1", id + "0", strings.Repeat("9", 5000), "-1", "\x01"} {
		conn, err := net.Dial("tcp", v.address())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, v.head("GET /mcp HTTP/1.1", "Mcp-Session-Id: "+mine, "MCP-Protocol-Version: 2025-06-18", "Mcp-Method:", "Mcp-Name:", "Last-Event-ID: "+last))
		_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // events that are replayed come at once
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if strings.Contains(string(answer), "xyzzy") || strings.Contains(string(answer), `"result"`) {
			t.Errorf("Last-Event-ID %.60q: %s", last, answer)
		}
	}
}

// Attack 21: text, ids and progress tokens with line breaks would forge events. Expected: each
// event has one line of data, and the text arrives as it was.
func TestLineBreaksInEvents(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	const nasty = "a\\r\\n\\r\\ndata: {\\\"forged\\\":1}\\n\\nid: 7\\revent: evil\\u2028\\u0085"
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"every__test_tool_with_progress","arguments":{},"_meta":{"progressToken":"%s",%s}}`,
		nasty, nasty, strings.TrimPrefix(modernMeta, `"_meta":{`))
	fields := v.echoFields()
	fields[len(fields)-1] = "every__test_tool_with_progress"
	code, text, header := v.exchange("POST", "/mcp", body, fields...)
	if code != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %v %s", code, header, text)
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		name, _, _ := strings.Cut(line, ":")
		if strings.Contains(line, "forged") && !strings.HasPrefix(line, `data: {"jsonrpc"`) && !strings.HasPrefix(line, `data:{"jsonrpc"`) || name == "event" && strings.Contains(line, "evil") {
			t.Errorf("a forged line: %q", line)
		}
	}
}
