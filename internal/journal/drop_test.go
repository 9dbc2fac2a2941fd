package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// asker answers questions when its context ends, that is too late.
type asker struct{}

func (asker) ServeMCP(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (asker) Notify(mcp.Notification) {}
func (asker) Down(error)              {}

// serveScript answers the handshake of a legacy session. Other requests go to serve.
func serveScript(conn transport.Conn, serve func(m jsonrpc.Message)) {
	for {
		frame, err := conn.Read()
		if err != nil {
			return
		}
		switch m, err := jsonrpc.Parse(frame, nil); {
		case err != nil || !m.IsRequest():
		case m.Method == mcpwire.MethodInitialize:
			_ = conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
		default:
			serve(m)
		}
	}
}

// A request that gets no response ends as an operation, and nothing of it stays in memory: however
// the response is lost, and with a question of the server on the way.
func TestRequestsWithoutResponse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		question string // sent by the server before the end
		end      func(cancel context.CancelFunc, server transport.Conn)
		want     journal.Status
	}{
		"cancelled":             {"", func(cancel context.CancelFunc, _ transport.Conn) { cancel() }, journal.Cancelled},
		"connection lost":       {"", func(_ context.CancelFunc, server transport.Conn) { server.Close() }, journal.Failed},
		"asked, lost":           {`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`, func(_ context.CancelFunc, server transport.Conn) { server.Close() }, journal.Failed},
		"asked, cancelled":      {`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`, func(cancel context.CancelFunc, _ transport.Conn) { cancel() }, journal.Cancelled},
		"answer is no response": {"", func(_ context.CancelFunc, server transport.Conn) { _ = server.Write([]byte(`{"id":2,"result":{}}`)) }, journal.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t, journal.Options{})
			near, far := memory.Pipe()
			asked := make(chan struct{})
			go serveScript(far, func(jsonrpc.Message) {
				if tt.question != "" {
					_ = far.Write([]byte(tt.question))
				}
				close(asked)
			})
			options := transport.ClientOptions{Revision: mcp.LatestLegacyRevision, Logger: slog.New(slog.DiscardHandler)}
			c, err := overconn.Connect(framesink.WithDialing(t.Context(), r.ServerConn("s")), near, asker{}, "", options)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"wait"}`)})
				done <- err
			}()
			<-asked
			cursor := r.Cursor(0)
			if tt.question != "" {
				awaitState(t, cursor, func(op *journal.Operation) bool { return op.Name == "wait" && op.Status == journal.Asked })
			}
			tt.end(cancel, far)
			if err := <-done; err == nil {
				t.Error("the call has a result")
			}
			c.Close()
			op, _ := callOf(t, r, "wait")
			if op.Status != tt.want || op.End.IsZero() || (op.Error != "") != (tt.want == journal.Failed) {
				t.Errorf("the operation is %+v, want %s", op, tt.want)
			}
			if n := r.OpenRequests(); n != 0 {
				t.Errorf("%d requests are still open", n)
			}
		})
	}
}

// Over HTTP, a request of a modern connection is cancelled by the end of its own connection.
func TestCancelledRequestOverHTTP(t *testing.T) {
	t.Parallel()
	for _, revision := range []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision} {
		url := recordedGateway(t, newRecorder(t, journal.Options{}), revision)
		r := newRecorder(t, journal.Options{})
		c := dialRecorded(t, r.ServerConn("s"), url, "dowel", revision)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := client.Call[string](ctx, c, "up__wait", struct{}{})
			done <- err
		}()
		cursor := r.Cursor(0)
		awaitState(t, cursor, func(op *journal.Operation) bool { return op.Name == "up__wait" })
		cancel()
		<-done
		awaitState(t, cursor, func(op *journal.Operation) bool { return op.Name == "up__wait" && op.Status == journal.Cancelled })
		c.Close()
		if n := r.OpenRequests(); n != 0 {
			t.Errorf("%s: %d requests are still open", revision, n)
		}
	}
}
