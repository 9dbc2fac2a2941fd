package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
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
		got := panics(func() {
			Handle[mcp.None, mcp.None](New("x", "1", nil), mcp.Method[mcp.None, mcp.None]{Name: name}, nil)
		})
		if !strings.Contains(got, name+" is a method of the protocol") {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := New("x", "1", nil)
	own := mcp.Method[mcp.None, mcp.None]{Name: "acme/x"}
	if got := panics(func() { Handle(s, own, nil) }); got != "" {
		t.Error(got)
	}
	if got := panics(func() { Handle(s, own, nil) }); !strings.Contains(got, "has a handler already") {
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

// TestMiddlewareServesTheRest checks that a middleware can serve all methods that the server lacks.
func TestMiddlewareServesTheRest(t *testing.T) {
	s := New("x", "1", nil)
	s.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if e, ok := errors.AsType[*mcp.Error](err); ok && e.Code == jsonrpc.CodeMethodNotFound {
				return &mcp.Result{Raw: json.RawMessage(`{"served":"` + req.Method + `"}`)}, nil
			}
			return res, err
		})
	})
	for _, method := range []string{mcp.MethodListTools, "acme/x"} {
		res, err := s.ServeMCP(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(`{}`), Revision: mcp.LatestRevision})
		if err != nil || string(res.Raw) != `{"served":"`+method+`"}` {
			t.Errorf("%s: %v, %v", method, res, err)
		}
	}
}
