package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// user is the header field with the principal of a request, for the tests of quotas.
const user = "X-User"

// limited returns options with a quota and with the principal of [user].
func limited(l transport.Limits) streamable.Options {
	return streamable.Options{
		ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(l)},
		Principal:     func(r *http.Request) mcp.Principal { return mcp.Principal{ID: r.Header.Get(user)} },
	}
}

// heapInUse returns the memory in use after a garbage collection.
func heapInUse() int64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Answers that clients do not read are bounded together, whichever form they have, and do not keep
// another client from getting its own.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const clients, size, most = 40, 4 << 20, 20 << 20
	for _, form := range []string{"application/json", "text/event-stream", "legacy"} {
		t.Run(form, func(t *testing.T) {
			s := testServer(nil)
			server.Tool(s, "huge", "Says much.", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil })
			opts := limited(transport.Limits{Bytes: most})
			opts.Sessions.Events = noEvents{} // else the store keeps answers, too
			_, web := serve(t, s, opts)
			before := heapInUse()
			for i := range clients {
				c := dialRaw(t, web)
				c.write(hugeCall(t, web.URL+"/mcp", form, fmt.Sprint("user", i)))
				c.readUntil("HTTP/1.1 200")
			}
			polltest.UntilNil(t, func() error { // the last calls may be in work
				grown := heapInUse() - before
				t.Logf("%d unread answers of %d MiB: %d MiB", clients, size>>20, grown>>20)
				if grown > 2*most {
					return fmt.Errorf("%d MiB are held, more than twice the limit of %d MiB", grown>>20, most>>20)
				}
				return nil
			})
			if bytes, _, _ := opts.Quota.Used(); bytes > most {
				t.Errorf("%d bytes are counted", bytes)
			}
			polltest.Until(t, "another client gets its answer", func() bool {
				got := send(t, "POST", web.URL+"/mcp", modernBody("tools/call", `"name":"huge","arguments":{}`), append(modernFields("tools/call"), "Mcp-Name", "huge")...)
				return len(got.body) > size
			})
		})
	}
}

// hugeCall returns the request of a user for the tool "huge".
func hugeCall(t *testing.T, url, form, name string) string {
	if form != "legacy" {
		body := modernBody("tools/call", `"name":"huge","arguments":{}`)
		lines := modernLines("tools/call", "Mcp-Name: huge", user+": "+name, length(len(body)))
		return strings.Replace(head("POST", lines...), "application/json, text/event-stream", form, 1) + body
	}
	got := send(t, "POST", url, initializeBody(mcp.Revision20251125, ""), user, name)
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"huge","arguments":{}}}`
	return head("POST", "Mcp-Session-Id: "+got.header.Get("Mcp-Session-Id"), user+": "+name, length(len(body))) + body
}

// noEvents is an event store that keeps nothing.
type noEvents struct{ streamable.EventStore }

func (noEvents) Append(context.Context, string, []byte) (string, error) {
	return "", streamable.ErrEventGone
}

// A client above its own limit is told so in place of the answer.
func TestAnswerOverTheLimit(t *testing.T) {
	opts := limited(transport.Limits{ClientBytes: flood})
	_, web := serve(t, flooding(), opts)
	body := modernBody("tools/call", `"name":"much","arguments":{}`)
	lines := modernLines("tools/call", "Mcp-Name: much", user+": one", length(len(body)))
	first, second := dialRaw(t, web), dialRaw(t, web)
	first.write(head("POST", lines...) + body)
	if _, err := first.in.Peek(1); err != nil {
		t.Fatal(err)
	}
	second.write(head("POST", lines...) + body)
	if got := second.read(); got.status != 200 || code(t, got.body) != -32603 || !strings.Contains(got.body, "6 MiB") || !strings.Contains(got.body, "(clientBytes)") {
		t.Errorf("%d %.300s", got.status, got.body)
	}
	if got := first.read(); len(got.body) < flood {
		t.Errorf("the first answer has %d bytes", len(got.body))
	}
	polltest.Until(t, "nothing is counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes == 0 })
	second.write(head("POST", lines...) + body)
	if got := second.read(); len(got.body) < flood {
		t.Errorf("afterwards: %d %.300s", got.status, got.body)
	}
}

// Requests that do not arrive completely are bounded, too.
func TestUnfinishedBodiesAreBounded(t *testing.T) {
	const size = 1 << 20
	opts := limited(transport.Limits{ClientBytes: 2 * size})
	_, web := serve(t, testServer(nil), opts)
	lines := modernLines("tools/list", user+": one", length(size))
	for range 2 {
		c := dialRaw(t, web)
		c.write(head("POST", lines...) + `{"x":"` + strings.Repeat("x", size/2))
	}
	polltest.Until(t, "both bodies are counted", func() bool { bytes, _, _ := opts.Quota.Used(); return bytes == 2*size })
	c := dialRaw(t, web)
	c.write(head("POST", lines...) + `{"x":"` + strings.Repeat("x", size/8))
	if got := c.read(); got.status != 429 || !strings.Contains(got.body, "(clientBytes)") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// openListen opens a subscription of a user, and returns its connection and the status.
func openListen(c *rawClient, name string) answer {
	body := modernBody("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
	c.write(head("POST", modernLines("subscriptions/listen", user+": "+name, length(len(body)))...) + body)
	line, err := c.in.Peek(len("HTTP/1.1 200"))
	if err != nil {
		c.t.Fatal(err)
	}
	if strings.HasSuffix(string(line), "200") {
		c.readUntil("data:")
		return answer{status: 200}
	}
	return c.read()
}

// One client cannot take all streams of a server.
func TestStreamsOfOneClient(t *testing.T) {
	const most = 20
	opts := limited(transport.Limits{Streams: most + 3, ClientStreams: most})
	_, web := serve(t, testServer(nil), opts)
	var first *rawClient
	for range most {
		c := dialRaw(t, web)
		if got := openListen(c, "one"); got.status != 200 {
			t.Fatal(got)
		}
		if first == nil {
			first = c
		}
	}
	got := openListen(dialRaw(t, web), "one")
	if got.status != 429 || code(t, got.body) != -32603 || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, `"id":`) || !strings.Contains(got.body, "(clientStreams)") {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	url := web.URL + "/mcp"
	in := append(inSession(send(t, "POST", url, initializeBody(mcp.Revision20251125, ""), user, "one").header.Get("Mcp-Session-Id"), mcp.Revision20251125), user, "one")
	if got := send(t, "GET", url, "", append(in, "Accept", "text/event-stream")...); got.status != 429 {
		t.Errorf("the stream of a legacy session: %d %s", got.status, got.body)
	}
	for range 3 {
		if got := openListen(dialRaw(t, web), "two"); got.status != 200 {
			t.Fatalf("another client: %v", got)
		}
	}
	if got := openListen(dialRaw(t, web), "three"); got.status != 503 || !strings.Contains(got.body, "(streams)") {
		t.Errorf("above the limit of the process: %d %s", got.status, got.body)
	}
	first.conn.Close()
	polltest.Until(t, "a stream in place of the closed one", func() bool { return openListen(dialRaw(t, web), "one").status == 200 })
}

// The idle sessions of one client lock out neither others nor itself, and cost others no session.
func TestIdleSessionsOfOneClient(t *testing.T) {
	const most = 50
	endpoint, web := serve(t, testServer(nil), limited(transport.Limits{Sessions: most + 10, ClientSessions: most}))
	url := web.URL + "/mcp"
	openFor := func(name string) []string {
		got := send(t, "POST", url, initializeBody(mcp.Revision20251125, ""), user, name)
		if got.status != 200 {
			t.Fatalf("%s: %d %s", name, got.status, got.body)
		}
		return append(inSession(got.header.Get("Mcp-Session-Id"), mcp.Revision20251125), user, name)
	}
	other := openFor("other")
	first := openFor("one")
	for range 3 * most {
		openFor("one")
	}
	if n := endpoint.Sessions(); n != most+1 {
		t.Errorf("%d sessions are kept, want %d", n, most+1)
	}
	if got := send(t, "POST", url, pingBody, first...); got.status != 404 {
		t.Errorf("the oldest session: %d %s", got.status, got.body)
	}
	for _, in := range [][]string{other, openFor("third")} {
		if got := send(t, "POST", url, pingBody, in...); got.status != 200 {
			t.Errorf("another client: %d %s", got.status, got.body)
		}
	}
	for range 2 * most { // clients without a name, each with a connection of its own
		openFor("")
	}
	if got := send(t, "POST", url, pingBody, other...); got.status != 200 {
		t.Errorf("another client, after sessions without a name: %d %s", got.status, got.body)
	}
	openFor("fourth")
}
