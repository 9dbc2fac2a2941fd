package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func BenchmarkCall(b *testing.B) {
	type in struct {
		Message string `json:"message"`
	}
	type out struct {
		Message string   `json:"message"`
		Tags    []string `json:"tags"`
	}
	s := newServer()
	server.Tool(s, "echo", "", func(_ context.Context, in in) (string, error) { return in.Message, nil })
	server.Tool(s, "structured", "", func(_ context.Context, in in) (out, error) { return out{in.Message, nil}, nil })
	server.Tool(s, "nothing", "", none)
	for _, tool := range []string{"nothing", "echo", "structured"} {
		arguments := `{"message":"hello, world"}`
		if tool == "nothing" {
			arguments = `{}`
		}
		req := request(mcp.MethodCallTool, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
		b.Run(tool, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if res, err := s.ServeMCP(context.Background(), req); err != nil || res.Value.(*mcp.CallToolResult).IsError {
					b.Fatal(res, err)
				}
			}
		})
	}
}

func BenchmarkProgress(b *testing.B) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (struct{}, error) {
		server.Progress(ctx, 1, 2, "half")
		return struct{}{}, nil
	})
	for _, token := range []string{"", "1"} {
		req := request(mcp.MethodCallTool, `{"name":"t"}`)
		req.Peer = nobody{}
		if token != "" {
			req.ProgressToken = json.RawMessage(token)
		}
		b.Run("token="+token, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ServeMCP(context.Background(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// nobody accepts and drops everything.
type nobody struct{}

func (nobody) Notify(context.Context, mcp.Notification) error { return nil }
func (nobody) Change(context.Context, mcp.Notification) error { return nil }

func BenchmarkList(b *testing.B) {
	for _, filtered := range []bool{false, true} {
		o := server.Options{}
		if filtered {
			o.Visible = func(context.Context, mcp.Principal, server.Item) bool { return true }
		}
		s := newServer(o)
		for n := range 1000 {
			if err := s.Add(item(b, fmt.Sprint("tool", n))); err != nil {
				b.Fatal(err)
			}
		}
		req := request(mcp.MethodListTools, `{}`)
		b.Run(fmt.Sprint("filtered=", filtered), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ServeMCP(context.Background(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRegister(b *testing.B) {
	items := make([]server.Item, 1000)
	for n := range items {
		items[n] = item(b, fmt.Sprint("tool", n))
	}
	b.ReportAllocs()
	for b.Loop() {
		s := newServer()
		for _, item := range items {
			if err := s.Add(item); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkAsk is a call that asks, and its retry.
func BenchmarkAsk(b *testing.B) {
	s := newServer()
	server.Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) { return server.Ask[string](ctx, "k", "?") })
	first := request(mcp.MethodCallTool, `{"name":"t","arguments":{}}`)
	answers := map[string]json.RawMessage{"k": json.RawMessage(accept(`{"value":"x"}`))}
	second := request(mcp.MethodCallTool, "")
	second.Params = retry(b, first.Params, answers, stateOf(b, s, first))
	for name, req := range map[string]*mcp.Request{"question": first, "answer": second} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ServeMCP(context.Background(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFanOut makes one change that a thousand subscriptions wait for.
func BenchmarkFanOut(b *testing.B) {
	s := newServer(server.Options{Declare: []server.Kind{server.KindResource}})
	arrived := make(chan struct{}, 4096)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	const listeners = 1000
	for range listeners {
		req := request(mcp.MethodListen, `{"notifications":{"resourceSubscriptions":["x://a"]}}`)
		req.Peer = counter(arrived)
		go func() {
			_, _ = s.ServeMCP(ctx, req)
			done <- struct{}{}
		}()
		<-arrived
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Updated("x://a/b")
		for range listeners {
			<-arrived
		}
	}
	cancel()
	for range listeners {
		<-done
	}
}

type counter chan struct{}

func (c counter) Notify(context.Context, mcp.Notification) error { return nil }
func (c counter) Change(context.Context, mcp.Notification) error { c <- struct{}{}; return nil }
