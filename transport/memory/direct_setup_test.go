package memory_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/internal/framesink"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// wired hides that the ends of a pipe are in one process, so that each frame waits for a reading
// loop.
type wired struct{ transport.Conn }

func (w wired) TryWrite(frame []byte) bool { return w.Conn.(transport.TryWriter).TryWrite(frame) }

// setup is a connection to a handler.
type setup struct {
	handler mcp.Handler
	in      mcp.Inbound
	server  transport.ServerOptions
	client  transport.ClientOptions
	isWired bool
	sink    framesink.Sink // of the client; may be nil
}

// connect returns a transport and its inbound. Its Close waits for the server.
func (s setup) connect(t testing.TB) mcp.Transport {
	t.Helper()
	near, far := memory.Pipe()
	if s.isWired {
		near, far = wired{near}, wired{far}
	}
	if s.server.Logger == nil {
		s.server.Logger = quiet
	}
	if s.client.Logger == nil {
		s.client.Logger = quiet
	}
	if s.in == nil {
		s.in = newInbound()
	}
	c := &closing{}
	c.served.Go(func() { _ = overconn.Serve(context.Background(), far, s.handler, s.server) })
	var err error
	dialing := context.Background()
	if s.sink != nil {
		dialing = framesink.WithDialing(dialing, s.sink)
	}
	if c.Transport, err = overconn.Connect(dialing, near, s.in, "", s.client); err != nil {
		t.Fatal(err)
	}
	return c
}

type closing struct {
	mcp.Transport
	served sync.WaitGroup
}

func (c *closing) Close() error {
	err := c.Transport.Close()
	c.served.Wait()
	return err
}

// tool returns a handler that runs f for each tool, and the fixture for other methods.
func tool(f func(ctx context.Context, name string, req *mcp.Request) (*mcp.Result, error)) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return fixture(ctx, req)
		}
		var p mcp.CallToolParams
		if err := mcp.Decode(req.Params, &p); err != nil {
			return nil, err
		}
		return f(ctx, p.Name, req)
	})
}

func textResult(text string) *mcp.Result {
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text)}}}
}

var eras = []mcp.Revision{mcp.LatestRevision, mcp.LatestLegacyRevision}

// eachWay runs a test in both eras, over a wire and in process. Each time, it runs the test with a
// context that cannot end, so that calls lend their goroutine, and with one that can.
func eachWay(t *testing.T, test func(t *testing.T, s setup, ctx context.Context)) {
	for _, r := range eras {
		for _, isWired := range []bool{false, true} {
			for _, isLent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/wired=%v/lent=%v", r, isWired, isLent), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx := context.Background()
						if !isLent {
							ctx = t.Context()
						}
						test(t, setup{isWired: isWired, client: transport.ClientOptions{Revision: r}}, ctx)
					})
				})
			}
		}
	}
}

// goroutineID names the running goroutine.
func goroutineID() string {
	buf := make([]byte, 64)
	id, _, _ := strings.Cut(strings.TrimPrefix(string(buf[:runtime.Stack(buf, false)]), "goroutine "), " ")
	return id
}
