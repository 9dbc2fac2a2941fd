package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// inbound answers elicitations with a name and records what belongs to no call.
type inbound struct {
	notes chan mcp.Notification
	down  chan error
}

func newInbound() *inbound {
	return &inbound{make(chan mcp.Notification, 16), make(chan error, 1)}
}

func (in *inbound) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodElicit {
		return nil, mcp.MethodNotFound(req.Method)
	}
	return &mcp.Result{Value: &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"name":"Ada"}`)}}, nil
}

func (in *inbound) Notify(n mcp.Notification) { in.notes <- n }
func (in *inbound) Down(err error)            { in.down <- err }

// fixture is a handler without package server.
func fixture(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Result{
			ServerInfo: json.RawMessage(`{"name":"fixture","version":"1"}`),
			Value: &mcp.DiscoverResult{
				SupportedVersions: mcp.Revisions(), Instructions: "be kind",
				Capabilities: mcp.ServerCapabilities{
					Tools: &mcp.ListCapability{ListChanged: true}, Logging: &struct{}{},
					Resources: &mcp.ResourcesCapability{Subscribe: true},
				},
			},
		}, nil
	case mcp.MethodListen:
		return listen(ctx, req)
	case mcp.MethodCallTool:
		return callTool(ctx, req)
	}
	return nil, mcp.MethodNotFound(req.Method)
}

func listen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, err
	}
	acked, _ := mcp.Encode(mcp.ListenParams{Notifications: p.Notifications})
	if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: acked}); err != nil {
		return nil, err
	}
	if p.Notifications.ToolsListChanged {
		_ = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationToolsChanged})
		_ = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationToolsChanged})
	}
	for _, uri := range p.Notifications.ResourceSubscriptions {
		params, _ := mcp.Encode(mcp.ResourceUpdatedParams{URI: uri})
		_ = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: params})
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func callTool(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.CallToolParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, err
	}
	text := func(format string, args ...any) (*mcp.Result, error) {
		return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(fmt.Sprintf(format, args...))}}}, nil
	}
	switch p.Name {
	case "echo":
		return text("%s", p.Arguments)
	case "progress":
		for i := range 3 {
			params := fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, req.ProgressToken, i)
			if err := req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationProgress, Params: []byte(params)}); err != nil {
				return nil, err
			}
		}
		return text("done")
	case "ask":
		answer, ok := p.InputResponses["who"]
		if !ok {
			return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{
				RequestState: new("state"),
				InputRequests: map[string]mcp.InputRequest{"who": {Method: mcp.MethodElicit, Params: json.RawMessage(
					`{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`)}},
			}}, nil
		}
		if p.RequestState == nil || *p.RequestState != "state" {
			return nil, mcp.InvalidParams("no state")
		}
		return text("hello %s", rawjson.Lookup(rawjson.Lookup(answer, "content"), "name"))
	case "hang":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "panic":
		panic("boom")
	case "capable":
		return nil, &mcp.CapabilityError{Required: mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}}
	}
	return nil, fmt.Errorf("secret detail")
}

func dial(t *testing.T, opts transport.ClientOptions) (mcp.Transport, *inbound) {
	t.Helper()
	in := newInbound()
	opts.Capabilities.Elicitation = &mcp.ElicitationCapability{}
	opts.Tap = mcptest.ClientTap(t)
	c, err := memory.Dialer(mcp.HandlerFunc(fixture)).Dial(t.Context(), in, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, in
}

func eachRevision(t *testing.T, test func(t *testing.T, r mcp.Revision)) {
	for _, r := range mcp.Revisions() {
		t.Run(string(r), func(t *testing.T) { test(t, r) })
	}
}

func call(ctx context.Context, c mcp.Transport, name string, notify func(mcp.Notification)) (string, *mcp.Response, error) {
	res, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":{"a":1}}`, name)), Notify: notify})
	if err != nil {
		return "", nil, err
	}
	var out mcp.CallToolResult
	if err := mcp.Decode(res.Raw, &out); err != nil {
		return "", nil, err
	}
	if len(out.Content) == 0 {
		return "", res, nil
	}
	return out.Content[0].Text, res, nil
}

func TestEveryRevision(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		got, res, err := call(t.Context(), c, "echo", nil)
		if err != nil || got != `{"a":1}` || res.Revision != r {
			t.Errorf("echo: %q, %+v, %v", got, res, err)
		}
		d, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodDiscover})
		if err != nil || !strings.Contains(string(d.Raw), `"be kind"`) || !strings.Contains(string(d.Raw), `"name":"fixture"`) {
			t.Errorf("discover: %s, %v", d.Raw, err)
		}
	})
}

func TestProgressComesInOrderBeforeTheResult(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		var got []string
		text, _, err := call(t.Context(), c, "progress", func(n mcp.Notification) {
			got = append(got, string(rawjson.Lookup(n.Params, "progress")))
		})
		if err != nil || text != "done" || strings.Join(got, " ") != "0 1 2" {
			t.Errorf("%q, %v, %v", text, got, err)
		}
	})
}

func TestAskingIsLiveOrInputRequired(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		text, res, err := call(t.Context(), c, "ask", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Modern() {
			if res.Type != mcp.ResultInputRequired {
				t.Errorf("the type is %q", res.Type)
			}
		} else if r < mcp.Revision20250618 { // which have no elicitation
			if !strings.Contains(text, "does not support questions to the user (elicitation)") {
				t.Errorf("got %q", text)
			}
		} else if text != `hello "Ada"` {
			t.Errorf("got %q", text)
		}
	})
}

func TestCancel(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
		defer cancel()
		_, _, err := call(ctx, c, "hang", nil)
		if err == nil || err.Error() != "enough" {
			t.Errorf("got %v", err)
		}
		if text, _, err := call(t.Context(), c, "echo", nil); err != nil || text == "" {
			t.Errorf("the connection should live: %v", err)
		}
	})
}

func TestErrors(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		for name, code := range map[string]int{"panic": -32603, "other": -32603} {
			_, _, err := call(t.Context(), c, name, nil)
			var e *mcp.Error
			if !errors.As(err, &e) || e.Code != code || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, res, err := call(t.Context(), c, "capable", nil)
		var e *mcp.Error
		if r.Modern() {
			if !errors.As(err, &e) || e.Code != mcp.CodeMissingCapability || string(e.Data) != `{"requiredCapabilities":{"sampling":{}}}` {
				t.Errorf("got %v", err)
			}
		} else if err != nil || !strings.Contains(string(res.Raw), `"isError":true`) {
			t.Errorf("got %v", err)
		}
	})
}

func TestListen(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := dial(t, transport.ClientOptions{Revision: r})
		ctx, cancel := context.WithCancelCause(t.Context())
		var got []string
		_, err := c.RoundTrip(ctx, &mcp.Request{
			Method: mcp.MethodListen,
			Params: json.RawMessage(`{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x://y"]}}`),
			Notify: func(n mcp.Notification) {
				got = append(got, strings.TrimPrefix(n.Method, "notifications/"))
				if n.Method == mcp.NotificationResourceUpdated {
					cancel(errors.New("seen"))
				}
			},
		})
		if err == nil || err.Error() != "seen" || got[0] != "subscriptions/acknowledged" {
			t.Errorf("%v, %v", got, err)
		}
	})
}

func TestCloseFailsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, in := dial(t, transport.ClientOptions{})
		failed := make(chan error)
		go func() {
			_, _, err := call(t.Context(), c, "hang", nil)
			failed <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) || !errors.Is(err, mcp.ErrConnection) {
			t.Errorf("got %v", err)
		}
		if len(in.down) != 0 {
			t.Error("Down was called for Close")
		}
	})
}
