package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
)

func TestParkedCallExpires(t *testing.T) {
	bubble(t, gateway.Options{ParkTimeout: time.Minute}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		time.Sleep(59 * time.Second)
		if synctest.Wait(); w.count("notifications/cancelled") != 0 {
			t.Error("it has expired early")
		}
		time.Sleep(2 * time.Second)
		if synctest.Wait(); w.count("notifications/cancelled") != 1 {
			t.Errorf("it is not cancelled at its upstream: %q", w.frames)
		}
		_, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
		if code(err, jsonrpc.CodeInvalidParams) != nil || !strings.Contains(err.Error(), "call again") {
			t.Error(err)
		}
	})
}

func TestMaxParked(t *testing.T) {
	bubble(t, gateway.Options{Quota: transport.NewQuota(transport.Limits{Questions: 1})}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		_, err := g.ServeMCP(t.Context(), request("ada", `{"name":"b__ask","arguments":{}}`))
		if err == nil || !strings.Contains(err.Error(), "1 calls wait for answers already") {
			t.Error(err)
		}
		if synctest.Wait(); w.count("notifications/cancelled") != 1 {
			t.Errorf("the call beyond is not cancelled: %q", w.frames)
		}
		res, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
		if got := text(t, res, err); got != "Ada." {
			t.Error(got)
		}
	})
}

// At the limit of all clients, parked calls of clients without a name make room for others.
func TestNamelessParkedCallsMakeRoom(t *testing.T) {
	bubble(t, gateway.Options{Quota: transport.NewQuota(transport.Limits{Questions: 1})}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		nameless := request("", askOnce)
		keys, state := asks(t, g, nameless)
		ada := request("ada", `{"name":"b__ask","arguments":{}}`)
		adaKeys, adaState := asks(t, g, ada)
		if _, err := g.ServeMCP(t.Context(), answered(nameless, state, keys...)); code(err, jsonrpc.CodeInvalidParams) != nil {
			t.Errorf("the call without a name: %v", err)
		}
		res, err := g.ServeMCP(t.Context(), answered(ada, adaState, adaKeys...))
		if got := text(t, res, err); got != "Ada." {
			t.Error(got)
		}
	})
}

// The limit of a client is configurable; its oldest call makes room.
func TestParkedCallsOfAClient(t *testing.T) {
	bubble(t, gateway.Options{Quota: transport.NewQuota(transport.Limits{ClientQuestions: 1})}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		first, second := request("ada", askOnce), request("ada", `{"name":"b__ask","arguments":{}}`)
		keys, state := asks(t, g, first)
		asks(t, g, request("eve", askOnce))
		asks(t, g, second)
		if _, err := g.ServeMCP(t.Context(), answered(first, state, keys...)); code(err, jsonrpc.CodeInvalidParams) != nil {
			t.Errorf("the first call: %v", err)
		}
		if synctest.Wait(); w.count("notifications/cancelled") != 1 {
			t.Errorf("want one cancelled call: %q", w.frames)
		}
	})
}

// A state works once, for its principal and its request only.
func TestStates(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", `{"name":"a__ask","arguments":{"tag":"<1>","times":2}}`)
		keys, state := asks(t, g, req)
		prompt := request("ada", `{"name":"a__ask"}`)
		prompt.Method = mcp.MethodGetPrompt
		for name, wrong := range map[string]*mcp.Request{
			"another principal":  request("eve", string(req.Params)),
			"nobody":             request("", string(req.Params)),
			"another tool":       request("ada", `{"name":"a__other","arguments":{"tag":"<1>","times":2}}`),
			"another upstream":   request("ada", `{"name":"b__ask","arguments":{"tag":"<1>","times":2}}`),
			"other arguments":    request("ada", `{"name":"a__ask","arguments":{"tag":"<2>","times":2}}`),
			"arguments left out": request("ada", `{"name":"a__ask"}`),
			"another method":     prompt,
		} {
			_, err := g.ServeMCP(t.Context(), answered(wrong, state, keys...))
			if code(err, jsonrpc.CodeInvalidParams) != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		flipped := "A" + state[1:]
		if state[0] == 'A' {
			flipped = "B" + state[1:]
		}
		for _, forged := range []string{"", "1", state + "A", flipped} {
			_, err := g.ServeMCP(t.Context(), answered(req, forged, keys...))
			if code(err, jsonrpc.CodeInvalidParams) != nil {
				t.Errorf("state %q: %v", forged, err)
			}
		}
		// The same arguments, encoded otherwise.
		again := request("ada", `{"_meta":{"x":1}, "arguments": {"times":2, "tag":"\u003c1>"},"name":"a__ask"}`)
		more, next := asks(t, g, answered(again, state, keys...))
		if _, err := g.ServeMCP(t.Context(), answered(req, state, keys...)); code(err, jsonrpc.CodeInvalidParams) != nil {
			t.Errorf("an old state: %v", err)
		}
		res, err := g.ServeMCP(t.Context(), answered(req, next, more...))
		if got := text(t, res, err); got != "<1>Ada.Ada." {
			t.Error(got)
		}
		if _, err := g.ServeMCP(t.Context(), answered(req, next, more...)); code(err, jsonrpc.CodeInvalidParams) != nil {
			t.Errorf("the last state again: %v", err)
		}
		if synctest.Wait(); w.count(`"tools/call"`) != 1 || w.count("notifications/cancelled") != 0 {
			t.Errorf("%q", w.frames)
		}
	})
}

// Questions without an answer are asked again.
func TestMissingAnswers(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		again, state := asks(t, g, answered(req, state, "nobody-asked"))
		if !slices.Equal(keys, again) {
			t.Errorf("%v, then %v", keys, again)
		}
		res, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
		if got := text(t, res, err); got != "Ada." {
			t.Error(got)
		}
	})
}

// A client that disconnects while its parked call continues cancels the call.
func TestGoneWhileResumed(t *testing.T) {
	slow := server.New("slow", "1", &server.Options{Logger: quiet})
	server.Tool(slow, "ask", "Asks, then hangs.", func(ctx context.Context, _ nothing) (string, error) {
		if _, err := server.Sample(ctx, "q", says("go on?")); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		retry := answered(req, state, keys...)
		retry.Params = []byte(strings.Replace(string(retry.Params), `{"action":"accept","content":{"name":"Ada"}}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`, 1))
		errDisconnected := errors.New("gone")
		ctx, leave := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { leave(errDisconnected) })
		if _, err := g.ServeMCP(ctx, retry); !errors.Is(err, errDisconnected) {
			t.Error(err)
		}
		if synctest.Wait(); w.count("notifications/cancelled") != 1 {
			t.Errorf("%q", w.frames)
		}
	}, func(d *hub.Definition) { d.Target = slow })
}

// A legacy client is asked live. If it disconnects or refuses to answer, the upstream's call ends
// at once.
func TestOlderClientGoes(t *testing.T) {
	for name, elicit := range map[string]func(ctx context.Context, leave func()) error{
		"it cancels":         func(ctx context.Context, leave func()) error { leave(); <-ctx.Done(); return ctx.Err() },
		"it cannot answer":   func(context.Context, func()) error { return errors.New("no screen") },
		"it closes the pipe": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, w *wires) {
				ctx, leave := context.WithCancel(t.Context())
				var c *client.Client
				c = dial(t, g, client.Options{Wire: client.Wire{Revision: mcp.Revision20250618}, Logger: quiet, Answers: client.Answers{Elicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
					if elicit == nil {
						go c.Close()
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return nil, elicit(ctx, leave)
				}}})
				_, err := client.Call[string](ctx, c, "a__ask", nil)
				if err == nil {
					t.Error("it is answered")
				}
				time.Sleep(time.Second)
				if synctest.Wait(); w.count("notifications/cancelled") != 1 {
					t.Errorf("after %v: %q", err, w.frames)
				}
			})
		})
	}
}

func TestCloseEndsParkedCalls(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, w *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		g.Close()
		if synctest.Wait(); w.count("notifications/cancelled") != 1 {
			t.Errorf("%q", w.frames)
		}
		for _, r := range []*mcp.Request{answered(req, state, keys...), req} {
			if res, err := g.ServeMCP(t.Context(), r); err == nil {
				t.Errorf("%+v", res)
			}
		}
	})
}
