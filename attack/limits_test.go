//go:build linux

package attack

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/programtest"
)

// newLimitedVictim returns a victim with limits for clients, and a client ci, the attacker.
func newLimitedVictim(t *testing.T, limits string) *victim {
	v := newVictim(t)
	v.env = []string{"GOGC=20"} // the live heap is as the last garbage collection found it
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, "large": %s}, "gateway": {"clients": {"ci": {"token": "token-of-ci"}}, "limits": %s}}`,
		builtIn("everything"), hostile(t, "server", "readable result"), limits))
	v.start()
	v.checkServes()
	return v
}

// attackerHead is head for requests of ci.
func (v *victim) attackerHead(line string, more ...string) string {
	return v.head(line, append(more, "Authorization: Bearer token-of-ci")...)
}

// peakMemory returns the most resident memory that the victim's dowel had, in bytes.
func (v *victim) peakMemory() (peak int64) {
	v.t.Helper()
	peak, err := programtest.PeakMemory(v.cmd.Process.Pid)
	if err != nil {
		v.t.Fatal(err)
	}
	return peak
}

// openRequests sends a request over n connections at once. It returns the connections and the
// numbers of answers by their first line, after the first least bytes of each answer have arrived.
// The rest is not read.
func (v *victim) openRequests(n, least int, request string) (open []net.Conn, answers map[string]int) {
	v.t.Helper()
	answers = map[string]int{}
	for range n {
		conn, err := net.Dial("tcp", v.address())
		if err != nil {
			v.t.Fatal(err)
		}
		open = append(open, conn)
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		if _, err := io.WriteString(conn, request); err != nil {
			v.t.Fatal(err)
		}
	}
	for _, conn := range open {
		begin := make([]byte, least)
		_ = conn.SetReadDeadline(time.Now().Add(polltest.Limit))
		if _, err := io.ReadFull(conn, begin); err != nil {
			v.t.Fatalf("%v after %q", err, begin)
		}
		line, _, _ := strings.Cut(string(begin), "\r\n")
		answers[line]++
	}
	return open, answers
}

func closeAll(open []net.Conn) {
	for _, conn := range open {
		conn.Close()
	}
}

// Attack 25: one client opens thousands of subscriptions. Expected: those over its limit get status
// 429, memory is bounded, and others are served.
func TestManySubscriptions(t *testing.T) {
	t.Parallel()
	v := newLimitedVictim(t, `{}`)
	n := repeatCount(1_100, 10_000)
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
	open, answers := v.openRequests(n, 40, v.attackerHead("POST /client/ci/mcp HTTP/1.1", "Mcp-Method: subscriptions/listen", "Mcp-Name:", length(body))+body)
	defer closeAll(open)
	if ok, refused := answers["HTTP/1.1 200 OK"], answers["HTTP/1.1 429 Too Many Requests"]; ok != 1000 || ok+refused != n {
		t.Errorf("%v", answers)
	}
	v.checkServes()
	if peak := v.peakMemory(); peak > 300<<20 {
		t.Errorf("%d MiB of memory", peak>>20)
	}
}

// Attack 26: many clients call a tool with a result of 15 MiB and do not read it. Expected: memory
// is bounded, for one client and for all, and others are served.
func TestUnreadResults(t *testing.T) {
	t.Parallel()
	v := newLimitedVictim(t, `{"bytes": "64MiB", "clientBytes": "32MiB"}`)
	// Each answer repeats the id, so 1000 bytes are more than the head of an answer.
	id := fmt.Sprintf(`"id":"%s"`, strings.Repeat("i", 1000))
	body := strings.Replace(strings.Replace(echoBody, "every__echo", "large__good", 1), `"id":1`, id, 1)
	for _, attempt := range []struct {
		name  string
		limit int64
		head  string
	}{
		{"one client", 32 << 20, v.attackerHead("POST /client/ci/mcp HTTP/1.1", "Mcp-Name: large__good", length(body))},
		{"a client for each connection", 64 << 20, v.head("POST /mcp HTTP/1.1", "Mcp-Name: large__good", length(body))},
	} {
		open, _ := v.openRequests(repeatCount(14, 60), 1000, attempt.head+body)
		const inWork = 80 << 20 // a result in work, and requests for the figures
		for range 2 {
			v.collect()
		}
		if heap := v.measure().HeapBytes; heap > attempt.limit+inWork {
			t.Errorf("%s: %d MiB live, want %d MiB at most", attempt.name, heap>>20, (attempt.limit+inWork)>>20)
		}
		v.checkServes()
		closeAll(open)
	}
}

// Attack 27: one client opens thousands of sessions and uses none. Expected: its own oldest ones
// end, and another client keeps its session and gets new ones.
func TestManySessions(t *testing.T) {
	t.Parallel()
	v := newLimitedVictim(t, `{}`)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`
	openSession := func(path, token string) string {
		code, text, header := v.exchange("POST", path, initialize, "Authorization", "Bearer "+token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		if code != http.StatusOK || header.Get("Mcp-Session-Id") == "" {
			t.Fatalf("%s: %d %s", path, code, text)
		}
		return header.Get("Mcp-Session-Id")
	}
	list := func(path, token, session string) int {
		code, _, _ := v.exchange("POST", path, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Authorization", "Bearer "+token, "Content-Type", "application/json",
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-06-18", "Mcp-Session-Id", session)
		return code
	}
	kept := openSession("/mcp", v.token)
	first := openSession("/client/ci/mcp", "token-of-ci")
	last := ""
	for range repeatCount(1_010, 10_200) {
		last = openSession("/client/ci/mcp", "token-of-ci")
	}
	if code := list("/mcp", v.token, kept); code != http.StatusOK {
		t.Errorf("the other client's session: %d", code)
	}
	if code := list("/client/ci/mcp", "token-of-ci", last); code != http.StatusOK {
		t.Errorf("the last session: %d", code)
	}
	if code := list("/client/ci/mcp", "token-of-ci", first); code != http.StatusNotFound {
		t.Errorf("the first session: %d, want 404", code)
	}
	openSession("/mcp", v.token)
	v.checkServes()
}
