package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// echo is a transport that costs nothing but its response.
type echo struct{ resp mcp.Response }

func (e *echo) RoundTrip(_ context.Context, req *mcp.Request) (*mcp.Response, error) {
	if req.Method == mcp.MethodDiscover {
		return &mcp.Response{Type: mcp.ResultComplete, Raw: json.RawMessage(discovery)}, nil
	}
	return &e.resp, nil
}

func (e *echo) Close() error { return nil }

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

func dialEcho(t testing.TB, o client.Options) *client.Client {
	c, err := client.Dial(context.Background(), &echo{mcp.Response{
		Type: mcp.ResultComplete, Raw: json.RawMessage(`{"content":[{"type":"text","text":"5"}],"structuredContent":{"sum":5}}`),
	}}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func BenchmarkCall(b *testing.B) {
	c := dialEcho(b, client.Options{})
	ctx := context.Background()
	in := &addIn{2, 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Call[sum](ctx, c, "add", in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCallWithTimeouts(b *testing.B) {
	c := dialEcho(b, client.Options{Limits: client.Limits{Idle: 1 << 40, Total: 1 << 40}})
	ctx := context.Background()
	in := &addIn{2, 3}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Call[sum](ctx, c, "add", in); err != nil {
			b.Fatal(err)
		}
	}
}

var _ transport.Dialer = (*fakeDialer)(nil)
