package websocket_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// An idle connection is kept by pings.
func TestPings(t *testing.T) {
	websocket.SetTimeouts(t, time.Minute, time.Minute, time.Minute)
	_, url := serve(t, newTestServer(), websocket.Options{KeepAlive: time.Millisecond})
	pinged := make(chan struct{}, 100)
	c := raw(t, url, &ws.DialOptions{Subprotocols: []string{"mcp"}, OnPingReceived: func(context.Context, []byte) bool {
		select {
		case pinged <- struct{}{}:
		default:
		}
		return true
	}})
	ended := c.CloseRead(within(t))
	for range 5 {
		select {
		case <-pinged:
		case <-ended.Done():
			t.Fatal("the connection ended")
		}
	}
}

// A client that does not answer pings loses the connection.
func TestSilentClient(t *testing.T) {
	websocket.SetTimeouts(t, 50*time.Millisecond, time.Minute, time.Minute)
	_, url := serve(t, newTestServer(), websocket.Options{KeepAlive: 10 * time.Millisecond})
	c := raw(t, url, &ws.DialOptions{Subprotocols: []string{"mcp"}, OnPingReceived: func(context.Context, []byte) bool { return false }})
	ctx := within(t)
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Error(err)
	}
}

// A client that sends no message loses the connection, with the reason.
func TestNoFirstMessage(t *testing.T) {
	websocket.SetTimeouts(t, time.Minute, time.Minute, time.Millisecond)
	_, url := serve(t, newTestServer(), websocket.Options{})
	c := raw(t, url, nil)
	_, _, err := c.Read(within(t))
	if ws.CloseStatus(err) != ws.StatusPolicyViolation || !strings.Contains(err.Error(), "sent no message") {
		t.Error(err)
	}
}

// A client that reads nothing loses the connection instead of holding up its calls, and Write waits
// for one that reads late.
func TestUnreadAnswers(t *testing.T) {
	const size = 8 << 20 // more than the buffers of the sockets
	for name, limit := range map[string]time.Duration{"never read": 100 * time.Millisecond, "read late": time.Minute} {
		t.Run(name, func(t *testing.T) {
			websocket.SetTimeouts(t, time.Minute, limit, time.Minute)
			w := newTestServer()
			_, url := serve(t, w, websocket.Options{KeepAlive: -1})
			c := raw(t, url, nil)
			exchange(t, c, initialize)
			send(t, c, toolCall(2, "wait", `{}`))
			<-w.entered
			send(t, c, toolCall(3, "big", `{"size":8388608}`))
			if limit < time.Minute {
				if err := <-w.ended; !errors.Is(err, mcp.ErrConnection) {
					t.Error(err)
				}
				return
			}
			if _, answer, err := c.Read(within(t)); err != nil || len(answer) < size {
				t.Error(len(answer), err)
			}
		})
	}
}

// Close returns although the peer does not confirm the end.
func TestCloseWithoutConfirmation(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	url := fake(t, nil, func(c *ws.Conn) {
		_, _, _ = c.Read(context.Background())
		_ = c.Write(context.Background(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"f","version":"1"}}}`))
		<-end
	})
	defer close(end)
	c := dial(t, websocket.URL{URL: url}, mcp.LatestLegacyRevision, answers())
	c.Close()
}
