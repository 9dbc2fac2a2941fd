package websocket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// modernCall returns a request of the latest revision.
func modernCall(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientCapabilities":{}},%s}}`, id, method, mcp.LatestRevision, params)
}

// Answers to many calls of one connection, which its client does not read, are bounded. What
// exceeds the limit is answered with an error, and each call gets an answer once the client reads.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const calls, size, most = 40, 1 << 20, 3 << 20
	var refusals atomic.Int32
	countRefusals := func(f transport.Frame) {
		if f.Kind == transport.Sent && len(f.Data) < size && strings.Contains(string(f.Data), "(clientBytes)") {
			refusals.Add(1)
		}
	}
	s := server.New("much", "1", &server.Options{Logger: quiet})
	server.Tool(s, "much", "Says much.", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil })
	quota := transport.NewQuota(transport.Limits{ClientBytes: most})
	_, url := serve(t, s, websocket.Options{ServerOptions: transport.ServerOptions{Quota: quota, Tap: countRefusals}})
	c := raw(t, url, nil)
	for id := range calls {
		if err := c.Write(t.Context(), ws.MessageText, []byte(modernCall(id, "tools/call", `"name":"much","arguments":{}`))); err != nil {
			t.Fatal(err)
		}
	}
	polltest.Until(t, "a call is refused", func() bool { return refusals.Load() > 0 })
	if bytes, _, _ := quota.Used(); bytes > most {
		t.Errorf("%d bytes are counted", bytes)
	}
	results, refused := 0, 0
	for range calls {
		_, data, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Error *mcp.Error }
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatal(err)
		}
		switch {
		case answer.Error == nil:
			results++
		case strings.Contains(answer.Error.Message, "(clientBytes)"):
			refused++
		default:
			t.Error(answer.Error)
		}
	}
	if results == 0 || refused == 0 {
		t.Errorf("%d results and %d refusals, want some of each", results, refused)
	}
	polltest.Until(t, "nothing is counted", func() bool { bytes, _, _ := quota.Used(); return bytes == 0 })
}

// Connections and subscriptions of a client count as streams.
func TestStreamsOfOneClient(t *testing.T) {
	t.Parallel()
	quota := transport.NewQuota(transport.Limits{ClientStreams: 2})
	opts := websocket.Options{ServerOptions: transport.ServerOptions{Quota: quota, Principal: mcp.Principal{ID: "one"}}}
	_, url := serve(t, newTestServer(), opts)
	c := raw(t, url, nil)
	for id, want := range []string{"acknowledged", "(clientStreams)"} {
		if err := c.Write(t.Context(), ws.MessageText, []byte(modernCall(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))); err != nil {
			t.Fatal(err)
		}
		if _, data, err := c.Read(t.Context()); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s, %v, want %s", data, err, want)
		}
	}
	if code, body := status(t, url, "GET"); code != 429 || !strings.Contains(body, "(clientStreams)") {
		t.Errorf("another connection: %d %s", code, body)
	}
	c.CloseNow()
	polltest.Until(t, "no stream is counted", func() bool { _, streams, _ := quota.Used(); return streams == 0 })
}
