//go:build linux

package attack

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
)

// countDescriptors returns the number of open descriptors of a process.
func countDescriptors(pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return len(entries)
}

// Attacks 22 and 23: bodies that are costly to read: a huge batch, deep nesting, unknown arguments
// and duplicate members. Expected: an error or an answer, and dowel still serves other clients.
func TestCostlyBodies(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	var arguments strings.Builder
	arguments.WriteString(`"message":"x"`)
	for i := range repeatCount(50_000, 250_000) {
		fmt.Fprintf(&arguments, `,"a%d":1`, i)
	}
	for name, body := range map[string]string{
		"a batch":           "[" + strings.TrimSuffix(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, repeatCount(20_000, 90_001)), ",") + "]",
		"deep nesting":      strings.Repeat("[", repeatCount(1<<20, 4<<20)),
		"deep objects":      strings.Repeat(`{"a":`, 1<<18),
		"unknown arguments": strings.Replace(echoBody, `"message":"xyzzy"`, arguments.String(), 1),
		"duplicate names":   strings.Replace(echoBody, `"name":"every__echo"`, `"name":"kv__get","name":"every__echo"`, 1),
		"duplicate methods": strings.Replace(echoBody, `"method":"tools/call"`, `"method":"tools/list","method":"tools/call"`, 1),
		"a large number":    strings.Replace(echoBody, `"id":1`, `"id":1e999999999`, 1),
		"a lone surrogate":  strings.Replace(echoBody, "xyzzy", `\ud800`, 1),
		"not UTF-8":         strings.Replace(echoBody, "xyzzy", "\xff\xfe", 1),
		"a byte order mark": "\xef\xbb\xbf" + echoBody,
	} {
		if code, text, _ := v.exchange("POST", "/mcp", body, v.echoFields()...); code >= 500 {
			t.Errorf("%s: %d %.300s", name, code, text)
		}
	}
	v.checkServes()
}

// Attack 24: bodies of valid requests with bytes changed, removed and repeated. Expected: no status
// of 500 or more, and dowel serves afterwards.
func TestMutatedBodies(t *testing.T) {
	t.Parallel()
	v := sharedVictimOf(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	originals := []string{echoBody, strings.Replace(echoBody, "tools/call", "subscriptions/listen", 1), strings.Replace(echoBody, "tools/call", "server/discover", 1),
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range repeatCount(1_500, 69_000) {
		body := []byte(originals[random.IntN(len(originals))])
		for range 1 + random.IntN(4) {
			at := random.IntN(len(body))
			switch random.IntN(4) {
			case 0:
				body[at] = byte(random.Uint32())
			case 1:
				body = append(body[:at], body[min(len(body), at+1+random.IntN(20)):]...)
			case 2:
				body = append(body[:at:at], append([]byte(`"[]{}:,0-e\`)[random.IntN(11):], body[at:]...)...)
			case 3:
				body = append(body[:at:at], body[at/2:]...)
			}
			if len(body) == 0 {
				body = []byte("{")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), polltest.Limit)
		r, err := http.NewRequestWithContext(ctx, "POST", v.url+"/mcp", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		fields := v.echoFields()
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if resp.StatusCode >= 500 {
			t.Errorf("%q: %s", body, resp.Status)
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		resp.Body.Close() // ends a stream of a listen
		cancel()
	}
	v.checkServes()
}

// Attacks 28 and 78: many streams, slow calls, sessions and idle WebSocket connections of one
// client, which then disconnects. Expected: dowel closes their file descriptors and still serves.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	v := newVictim(t)
	v.write(v.userFile(), `{"mcpServers": {"every": `+builtIn("everything")+`}}`)
	v.start()
	v.checkServes()
	before := countDescriptors(v.cmd.Process.Pid)
	slow := strings.Replace(echoBody, `"name":"every__echo","arguments":{"message":"xyzzy"}`, `"name":"every__slow","arguments":{"seconds":300}`, 1)
	var open []net.Conn
	for i := range repeatCount(300, 3_000) {
		conn, err := net.Dial("tcp", v.address())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		text := v.head("GET /sse HTTP/1.1", "Accept: text/event-stream")
		switch i % 3 {
		case 1:
			text = v.head("POST /mcp HTTP/1.1", "Mcp-Name: every__slow", length(slow)) + slow
		case 2:
			text = v.head("GET /ws HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: mcp")
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	v.checkServes()
	for range repeatCount(100, 4_000) {
		_, _, header := v.exchange("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`,
			"Authorization", v.bearer(), "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		v.exchange("DELETE", "/mcp", "", "Authorization", v.bearer(), "Mcp-Session-Id", header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-06-18")
	}
	for _, conn := range open {
		conn.Close()
	}
	v.checkServes()
	// A few more are allowed, because dowel may keep connections and files of its own open.
	polltest.Until(t, fmt.Sprintf("at most %d descriptors of dowel, as before", before+5), func() bool { return countDescriptors(v.cmd.Process.Pid) <= before+5 })
}
