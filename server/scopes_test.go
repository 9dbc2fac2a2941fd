package server_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// newScopedServer returns a server with a tool that needs scopes, also by its arguments, and a tool
// that is hidden from all but ann.
func newScopedServer(change func(*server.Options)) *server.Server {
	opts := server.Options{Visible: func(_ context.Context, p mcp.Principal, item server.Item) bool {
		return item.Name != "hidden" || p.ID == "ann"
	}}
	if change != nil {
		change(&opts)
	}
	s := newServer(opts)
	run := func(context.Context, struct{}) (string, error) { return "done", nil }
	server.Tool(s, "open", "", run)
	server.Tool(s, "hidden", "", run, server.ToolOptions{Scopes: []string{"secret"}})
	server.Tool(s, "file", "", func(_ context.Context, in struct{ Path string }) (string, error) { return in.Path, nil },
		server.ToolOptions{Scopes: []string{"files"}}, server.ToolOptions{ScopesFor: func(arguments json.RawMessage) []string {
			if strings.Contains(string(arguments), "/etc") {
				return []string{"system"}
			}
			return nil
		}})
	return s
}

func TestScopes(t *testing.T) {
	t.Parallel()
	s := newScopedServer(nil)
	for _, tt := range []struct {
		name, method, params string
		principal            string
		want                 []string
	}{
		{"list", mcp.MethodListTools, `{}`, "", nil},
		{"open", mcp.MethodCallTool, `{"name":"open"}`, "", nil},
		{"unknown", mcp.MethodCallTool, `{"name":"missing"}`, "", nil},
		{"no name", mcp.MethodCallTool, `{}`, "", nil},
		{"fixed", mcp.MethodCallTool, `{"name":"file","arguments":{"path":"a"}}`, "", []string{"files"}},
		{"by arguments", mcp.MethodCallTool, `{"name":"file","arguments":{"path":"/etc"}}`, "", []string{"files", "system"}},
		{"escaped name", mcp.MethodCallTool, `{"name":"\u0066ile"}`, "", []string{"files"}},
		{"arguments of another type", mcp.MethodCallTool, `{"name":"file","arguments":["/etc"]}`, "", []string{"files"}},
		{"hidden", mcp.MethodCallTool, `{"name":"hidden"}`, "", nil},
		{"visible", mcp.MethodCallTool, `{"name":"hidden"}`, "ann", []string{"secret"}},
	} {
		if got := s.Scopes(t.Context(), mcp.Principal{ID: tt.principal}, tt.method, json.RawMessage(tt.params)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	all := newScopedServer(func(o *server.Options) {
		o.Scopes = func(_ context.Context, _ mcp.Principal, method string, _ json.RawMessage) []string {
			return []string{method}
		}
	})
	for params, want := range map[string][]string{`{"name":"open"}`: {"tools/call"}, `{"name":"file"}`: {"tools/call", "files"}} {
		if got := all.Scopes(t.Context(), mcp.Principal{}, mcp.MethodCallTool, json.RawMessage(params)); !slices.Equal(got, want) {
			t.Errorf("with Options.Scopes: got %q, want %q", got, want)
		}
	}
}

// TestScopesBehindMiddleware checks that the server itself refuses a request over HTTP, if
// middleware hides its method Scopes from the transport.
func TestScopesBehindMiddleware(t *testing.T) {
	t.Parallel()
	s := newScopedServer(nil)
	for _, tt := range []struct {
		name   string
		header map[string][]string
		scopes []string
		want   string
	}{
		{"without scopes", map[string][]string{}, nil, "tools/call needs a token with the scopes files"},
		{"with other scopes", map[string][]string{}, []string{"other"}, "tools/call needs a token with the scopes files"},
		{"with scopes", map[string][]string{}, []string{"other", "files"}, ""},
		{"without HTTP", nil, nil, ""},
	} {
		_, err := s.ServeMCP(t.Context(), &mcp.Request{
			Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"file","arguments":{"path":"a"}}`), Revision: mcp.LatestRevision,
			Header: tt.header, Principal: mcp.Principal{Scopes: tt.scopes},
		})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
