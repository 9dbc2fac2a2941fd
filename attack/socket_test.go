//go:build linux

package attack

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// handshake opens a raw WebSocket connection, and returns it with the status of the answer. Fields
// replace the usual ones of the same name.
func (v *victim) handshake(line string, fields ...string) (net.Conn, string) {
	v.t.Helper()
	conn, err := net.Dial("tcp", v.address())
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(polltest.Limit))
	usual := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: mcp"}
	for _, one := range usual {
		name, _, _ := strings.Cut(one, ":")
		replaced := false
		for _, field := range fields {
			replaced = replaced || strings.HasPrefix(field, name+":")
		}
		if !replaced {
			fields = append(fields, one)
		}
	}
	if _, err := io.WriteString(conn, v.head(line, fields...)); err != nil {
		v.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	status, err := in.ReadString('\n')
	if err != nil {
		v.t.Fatalf("%v: no answer: %v", fields, err)
	}
	for text := status; strings.TrimSpace(text) != "" && err == nil; {
		text, err = in.ReadString('\n')
	}
	return conn, status
}

// Attack 75: pages open WebSocket connections, which browsers do for any origin. Expected: refused
// like other requests, at each path.
func TestWebSocketsOfPages(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, path := range []string{"/ws", "/ws/every", "/client/ci/ws"} {
		if _, status := v.handshake("GET " + path + " HTTP/1.1"); !strings.Contains(status, " 101 ") {
			t.Errorf("%s: %s", path, status)
		}
		for _, field := range []string{"Origin: http://evil.com", "Origin: http://localhost:3000", "Origin: null", "Sec-Fetch-Site: cross-site", "Host: evil.com", "Authorization: none", "Authorization: Bearer x"} {
			_, status := v.handshake("GET "+path+" HTTP/1.1", field)
			if !strings.Contains(status, " 403 ") && !strings.Contains(status, " 401 ") {
				t.Errorf("%s with %s: %s", path, field, status)
			}
		}
	}
}

// Attack 76: handshakes that are not quite right. Expected: an error status, never an open
// connection.
func TestOddHandshakes(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for _, test := range [][]string{
		{"POST /ws HTTP/1.1"}, {"GET /ws HTTP/1.0"}, {"GET /ws HTTP/1.1", "Sec-WebSocket-Version: 12"}, {"GET /ws HTTP/1.1", "Sec-WebSocket-Version:"},
		{"GET /ws HTTP/1.1", "Sec-WebSocket-Key:"}, {"GET /ws HTTP/1.1", "Sec-WebSocket-Key: short"}, {"GET /ws HTTP/1.1", "Connection: close"},
		{"GET /ws HTTP/1.1", "Upgrade: h2c"}, {"GET /ws HTTP/1.1", "Sec-WebSocket-Protocol: soap"}, {"GET /ws HTTP/1.1", "Sec-WebSocket-Protocol:"},
		{"GET /mcp HTTP/1.1"}, {"GET /ws/none HTTP/1.1"}, {"GET /ws/../client/ci/ws/x HTTP/1.1"},
	} {
		if _, status := v.handshake(test[0], test[1:]...); strings.Contains(status, " 101 ") || strings.Contains(status, " 200 ") {
			t.Errorf("%v: %s", test, status)
		}
	}
}

// frame returns a WebSocket frame. first is its first byte; the payload is masked with zeros.
func frame(first byte, payload string) string {
	n := len(payload)
	switch {
	case n < 126:
		return string([]byte{first, 0x80 | byte(n), 0, 0, 0, 0}) + payload
	case n < 1<<16:
		return string([]byte{first, 0x80 | 126, byte(n >> 8), byte(n), 0, 0, 0, 0}) + payload
	}
	head := binary.BigEndian.AppendUint64([]byte{first, 0x80 | 127}, uint64(n))
	return string(append(head, 0, 0, 0, 0)) + payload
}

// Attack 77: frames that break the protocol of WebSocket. Expected: the connection ends, and others
// are served.
func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for name, bytes := range map[string]string{
		"no mask":                   "\x81\x02{}",
		"a length of 2^63":          "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00",
		"reserved bits":             frame(0xf1, "{}"),
		"an unknown opcode":         frame(0x83, "{}"),
		"a continuation of nothing": frame(0x80, "{}"),
		"a large ping":              frame(0x89, strings.Repeat("x", 200)),
		"a fragmented ping":         frame(0x09, "x"),
		"text inside text":          frame(0x01, "{") + frame(0x81, "}"),
		"a close status of 1":       frame(0x88, "\x00\x01"),
		"half a frame":              "\x81\xfe\xff",
	} {
		conn, status := v.handshake("GET /ws HTTP/1.1")
		if !strings.Contains(status, " 101 ") {
			t.Fatalf("%s: %s", name, status)
		}
		_, _ = io.WriteString(conn, bytes)
		_ = conn.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, conn); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: the connection does not end: %v", name, err)
		}
	}
	v.checkServes()
}

// Attack 77: messages that are not requests, a flood of pings, and a message of many fragments.
// Expected: the connection stays or ends, and a call beside them is answered.
func TestWebSocketFloods(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	for name, bytes := range map[string]string{
		"pings":             strings.Repeat(frame(0x89, "x"), repeatCount(2_000, 50_000)),
		"empty fragments":   frame(0x01, "") + strings.Repeat(frame(0x00, ""), repeatCount(5_000, 100_000)),
		"no JSON":           strings.Repeat(frame(0x81, "}{"), repeatCount(500, 20_000)),
		"not UTF-8":         frame(0x81, "\xff\xfe"),
		"a deep array":      frame(0x81, strings.Repeat("[", 1<<20)),
		"duplicate members": frame(0x81, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/call"}`),
	} {
		conn, _ := v.handshake("GET /ws HTTP/1.1")
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_ = conn.SetWriteDeadline(time.Now().Add(polltest.Limit))
		if _, err := io.WriteString(conn, bytes); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the gateway neither reads nor ends the connection", name)
		}
		conn.Close()
	}
	v.checkServes()
}

// Attack 73: the token has leaked, and its owner renews it while the thief has open connections and
// a session. Expected: no request with the old token is served, over any of them.
func TestRenewedToken(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"every": `+builtIn("everything")+`}}`)
	v.start()
	ctx := t.Context()
	socket, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(v.url, "http")+"/ws", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {v.bearer()}}, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.CloseNow()
	if err := socket.Write(ctx, websocket.MessageText, []byte(echoBody)); err != nil {
		t.Fatal(err)
	}
	if _, text, err := socket.Read(ctx); err != nil || !strings.Contains(string(text), "xyzzy") {
		t.Fatalf("%s %v", text, err)
	}
	fields := v.echoFields()
	v.succeed("Authorization", "status", "--token", "--renew")
	if code, text, _ := v.exchange("POST", "/mcp", echoBody, fields...); code != http.StatusUnauthorized {
		t.Errorf("the old token: %d %s", code, text)
	}
	// The gateway may need a moment to end the connection.
	polltest.Until(t, "the end of the connection that has the old token", func() bool {
		if socket.Write(ctx, websocket.MessageText, []byte(echoBody)) != nil {
			return true
		}
		_, _, err := socket.Read(ctx)
		return err != nil
	})
}
