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

func TestOnNotification(t *testing.T) {
	type params struct {
		N int `json:"n"`
	}
	ping := mcp.NotificationMethod[params]{Name: "notifications/com.example/ping"}
	s := New("test", "1", nil)
	var got []int
	OnNotification(s, ping, func(_ context.Context, p params) { got = append(got, p.N) })
	for _, n := range []mcp.Notification{
		{Method: ping.Name, Params: []byte(`{"n":1}`)},
		{Method: "notifications/unknown"},
		{Method: ping.Name, Params: []byte(`{"n":"x"}`)},
		{Method: ping.Name, Params: []byte(`{"n":2}`)},
	} {
		s.NotifyMCP(t.Context(), n)
	}
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("got %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a method was taken twice")
		}
	}()
	OnNotification(s, ping, func(context.Context, params) {})
}

// notes is a peer that keeps notifications.
type notes struct {
	mcp.Peer
	got []string
}

func (n *notes) Notify(_ context.Context, note mcp.Notification) error {
	n.got = append(n.got, note.Method+" "+string(note.Params))
	return nil
}

func TestNotify(t *testing.T) {
	type params struct {
		N int `json:"n"`
	}
	own := mcp.NotificationMethod[params]{Name: "notifications/acme"}
	s := New("test", "1", nil)
	var kept context.Context
	var failed []error
	work := func(ctx context.Context) {
		kept = ctx
		failed = []error{
			Notify(ctx, own, params{1}), Notify(ctx, mcp.NotificationMethod[json.RawMessage]{Name: "notifications/raw"}, json.RawMessage(`{"a":1.0}`)),
			Notify(ctx, mcp.NotificationMethod[int]{Name: "notifications/int"}, 1), Notify(ctx, mcp.NotificationMethod[mcp.None]{Name: mcp.NotificationMessage}, mcp.None{}),
			Notify(ctx, mcp.NotificationMethod[json.RawMessage]{Name: mcpwire.NotificationCancelled}, json.RawMessage(`{"requestId":1}`)),
		}
	}
	Tool(s, "t", "", func(ctx context.Context, _ struct{}) (string, error) { work(ctx); return "", nil })
	Handle(s, mcp.Method[mcp.None, mcp.None]{Name: "acme/x"}, func(ctx context.Context, _ mcp.None) (mcp.None, error) { work(ctx); return mcp.None{}, nil })
	for _, method := range []string{mcp.MethodCallTool, "acme/x"} {
		peer := &notes{}
		if _, err := s.ServeMCP(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(`{"name":"t"}`), Peer: peer}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(peer.got, ", "); got != `notifications/acme {"n":1}, notifications/raw {"a":1.0}` {
			t.Errorf("%s: %s", method, got)
		}
		for i, part := range []string{"", "", "must be an object", "is a notification of the protocol", "is a notification of the protocol"} {
			if (failed[i] == nil) != (part == "") || failed[i] != nil && !strings.Contains(failed[i].Error(), part) {
				t.Errorf("%s, notification %d: %v", method, i, failed[i])
			}
		}
		if err := Notify(kept, own, params{}); !errors.Is(err, mcp.ErrPeerGone) {
			t.Errorf("after the handler: %v", err)
		}
	}
	if err := Notify(t.Context(), own, params{}); err == nil || !strings.Contains(err.Error(), "only a handler") {
		t.Errorf("outside: %v", err)
	}
}

// notificationRecorder is a middleware that records notifications and passes them on.
type notificationRecorder struct {
	mcp.Handler
	methods *[]string
}

func (h notificationRecorder) NotifyMCP(ctx context.Context, n mcp.Notification) {
	*h.methods = append(*h.methods, n.Method)
	h.Handler.(mcp.NotificationHandler).NotifyMCP(ctx, n)
}

// TestNotificationsPassMiddleware checks the middleware of Use and the middleware around the
// server.
func TestNotificationsPassMiddleware(t *testing.T) {
	s := New("test", "1", &Options{Extensions: []mcp.Extension{{ID: "com.acme/x"}}})
	taken := 0
	OnNotification(s, mcp.NotificationMethod[mcp.None]{Name: "notifications/acme"}, func(context.Context, mcp.None) { taken++ })
	withoutNotify := func(next mcp.Handler) mcp.Handler { return mcp.HandlerFunc(next.ServeMCP) }
	var methods []string
	recording := func(next mcp.Handler) mcp.Handler { return notificationRecorder{next, &methods} }
	s.Use(withoutNotify, recording, withoutNotify)
	h := mcp.Chain(s, withoutNotify, recording)
	for n, h := range []mcp.Handler{s, h} {
		h.(mcp.NotificationHandler).NotifyMCP(t.Context(), mcp.Notification{Method: "notifications/acme"})
		if taken != n+1 {
			t.Errorf("taken %d times", taken)
		}
	}
	if len(methods) != 3 {
		t.Errorf("methods %v", methods)
	}
	if k, ok := h.(interface{ Keys() *mcp.Keys }); !ok || k.Keys() != s.Keys() {
		t.Error("the chain has not the server's keys")
	}
	if e, ok := h.(interface{ Extensions() []mcp.Extension }); !ok || len(e.Extensions()) != 2 || e.Extensions()[0].ID != "com.acme/x" || e.Extensions()[1].ID != "io.modelcontextprotocol/tasks" {
		t.Error("the chain has not the server's extensions")
	}
}

// Notifications without a function of their own go to the fallback, and no others.
func TestFallbackForNotifications(t *testing.T) {
	t.Parallel()
	var known, unknown []string
	s := New("s", "1", &Options{OnNotification: func(_ context.Context, n mcp.Notification) {
		unknown = append(unknown, n.Method+string(n.Params))
	}})
	OnNotification(s, mcp.NotificationMethod[mcp.None]{Name: "acme/known"}, func(context.Context, mcp.None) { known = append(known, "acme/known") })
	s.NotifyMCP(t.Context(), mcp.Notification{Method: "acme/known", Params: []byte(`{}`)})
	s.NotifyMCP(t.Context(), mcp.Notification{Method: "acme/other", Params: []byte(`{"n":1}`)})
	if len(known) != 1 || len(unknown) != 1 || unknown[0] != `acme/other{"n":1}` {
		t.Errorf("known %q, unknown %q", known, unknown)
	}
}
