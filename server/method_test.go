package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// panics returns what f panics with, as text.
func panics(f func()) (text string) {
	defer func() {
		switch p := recover().(type) {
		case error:
			text = p.Error()
		case string:
			text = p
		}
	}()
	f()
	return ""
}

func TestProtocolMethodsAreTaken(t *testing.T) {
	for name := range mcpwire.MethodNames() {
		got := panics(func() { HandleRaw(New("x", "1", nil), name, nil) })
		if !strings.Contains(got, name+" is a method of the protocol") {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := New("x", "1", nil)
	if got := panics(func() {
		HandleRaw(s, "acme/x", func(context.Context, *mcp.Request) (*mcp.Result, error) { return nil, nil })
	}); got != "" {
		t.Error(got)
	}
	if got := panics(func() { HandleRaw(s, "acme/x", nil) }); !strings.Contains(got, "has a handler already") {
		t.Error(got)
	}
}

func TestCacheOfUncacheableMethod(t *testing.T) {
	got := panics(func() { New("x", "1", &Options{Cache: map[string]mcp.Cache{mcp.MethodCallTool: {}}}) })
	if !strings.Contains(got, "results of tools/call cannot be cached") {
		t.Errorf("got %q", got)
	}
}

func TestProtocolNotificationsAreTaken(t *testing.T) {
	for name, taken := range map[string]bool{
		mcpwire.NotificationCancelled: true, mcpwire.NotificationInitialized: true, mcp.NotificationRootsChanged: false, "notifications/acme": false,
	} {
		got := panics(func() {
			OnNotification(New("x", "1", nil), mcp.NotificationMethod[mcp.None]{Name: name}, func(context.Context, mcp.None) {})
		})
		if (got != "") != taken {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestFallback answers what the server does not offer, and nothing that it does.
func TestFallback(t *testing.T) {
	s := New("x", "1", nil)
	params := map[string]string{
		mcp.MethodCallTool: `{"name":"t"}`, mcp.MethodGetPrompt: `{"name":"p"}`, mcp.MethodReadResource: `{"uri":"x://r"}`,
		mcp.MethodComplete:  `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`,
		mcp.MethodListTools: `{}`, mcp.MethodListPrompts: `{}`, mcp.MethodListResources: `{}`, mcp.MethodListResourceTemplates: `{}`, "acme/x": `{}`,
	}
	fell := func(method string) bool {
		res, err := s.ServeMCP(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(params[method]), Revision: mcp.LatestRevision})
		return err == nil && string(res.Raw) == `{"fallen":true}`
	}
	for method := range params {
		_, err := s.ServeMCP(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(params[method]), Revision: mcp.LatestRevision})
		if e, ok := errors.AsType[*mcp.Error](err); !ok || e.Code != -32601 {
			t.Errorf("%s without a fallback: %v", method, err)
		}
	}
	s.Fallback(mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return &mcp.Result{Raw: json.RawMessage(`{"fallen":true}`)}, nil
	}))
	for method := range params {
		if !fell(method) {
			t.Errorf("%s does not fall through", method)
		}
	}
	type args struct {
		A string `json:"a,omitempty" enum:"x,y"`
	}
	Tool(s, "t", "", func(context.Context, struct{}) (string, error) { return "", nil })
	Prompt(s, "p", "", func(context.Context, args) (string, error) { return "", nil })
	Resource(s, "x://r", "", func(context.Context, struct{}) (string, error) { return "", nil })
	for method := range params {
		if fell(method) != (method == "acme/x") {
			t.Errorf("%s: the server has it now", method)
		}
	}
}
