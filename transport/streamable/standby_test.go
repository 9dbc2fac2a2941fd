package streamable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// A client may have several GET streams. Each message must arrive on one of them, and none may end
// another.
func TestSeveralStandingStreams(t *testing.T) {
	s := world(nil)
	_, web := serve(t, s)
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	grown := 0
	grow := func() {
		grown++
		server.Tool(s, fmt.Sprint("grown", grown), "New.", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	quiet := func(name string, lines <-chan string) {
		t.Helper()
		for {
			select {
			case line, ok := <-lines:
				if !ok || strings.HasPrefix(line, "data: {") {
					t.Errorf("the %s stream: %q, %v", name, line, ok)
					return
				}
			case <-time.After(100 * time.Millisecond):
				return
			}
		}
	}
	changed := func(name string, lines <-chan string) (id string) {
		t.Helper()
		id = until(t, lines, "id:")
		for data := ""; data == ""; {
			data = until(t, lines, "data:")
		}
		quiet(name, lines)
		return id
	}
	first, _ := stream(t, url, in...)
	until(t, first, "id:")
	second, cut := stream(t, url, in...)
	until(t, second, "id:")
	grow()
	last := changed("second", second)
	quiet("first", first)
	cut()
	other := ""
	within(t, "the server notices", func() bool {
		grow()
		select {
		case line := <-first:
			other, _ = strings.CutPrefix(line, "id: ")
		case <-time.After(50 * time.Millisecond):
		}
		return other != ""
	})
	until(t, first, "data:")
	again, _ := stream(t, url, append(in, "Last-Event-ID", last)...)
	for replaying := true; replaying; {
		select {
		case line := <-again:
			if line == "id: "+other {
				t.Error("what came on the first stream came once more")
			}
		case <-time.After(100 * time.Millisecond):
			replaying = false
		}
	}
	grow()
	changed("resumed", again)
	quiet("first", first)
}

// A stream that has ended, with all events received, must not be opened again: some clients would
// reconnect without end.
func TestNothingToComeBackFor(t *testing.T) {
	_, web := serve(t, world(nil))
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	lines := postStream(t, url, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"progress","arguments":{"message":"m"},"_meta":{"progressToken":1}}}`, in...)
	last := ""
	for answer := ""; !strings.Contains(answer, `"result"`); {
		last = until(t, lines, "id:")
		answer = until(t, lines, "data:")
	}
	if got := send(t, "GET", url, "", append(in, "Accept", "text/event-stream", "Last-Event-ID", last)...); got.status != 405 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
