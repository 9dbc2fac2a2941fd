package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
)

// The bridge's own rules: an upstream of 2025-11-25 asks, and a client of 2026-07-28 is told.

// wires records the frames sent to an upstream.
type wires struct {
	mu     sync.Mutex
	frames []string
}

func (w *wires) tap(f transport.Frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f.Kind == transport.Sent {
		w.frames = append(w.frames, string(f.Data))
	}
}

// count returns the number of frames that contain a text.
func (w *wires) count(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.frames {
		if strings.Contains(f, text) {
			n++
		}
	}
	return n
}

// asker is an upstream with a tool that asks for two names.
func asker() *server.Server {
	s := server.New("asker", "1", &server.Options{Logger: quiet})
	type named struct {
		Name string `json:"name"`
	}
	server.Tool(s, "ask", "Asks for names.", func(ctx context.Context, in struct {
		Times int    `json:"times,omitzero"`
		Tag   string `json:"tag,omitzero"`
		Long  int    `json:"long,omitzero"` // the bytes of the answer at least
		Rest  int    `json:"rest,omitzero"` // seconds before the answer
	}) (string, error) {
		said := in.Tag + strings.Repeat("x", in.Long)
		for i := range max(in.Times, 1) {
			n, err := server.Ask[named](ctx, fmt.Sprint("q", i), fmt.Sprintf("name %d?", i))
			if err != nil {
				return "", err
			}
			said += n.Name + "."
		}
		return said, timeout.Sleep(ctx, time.Duration(in.Rest)*time.Second)
	})
	server.Tool(s, "other", "Asks too.", func(ctx context.Context, _ nothing) (string, error) {
		n, err := server.Ask[named](ctx, "q", "name?")
		return n.Name, err
	})
	server.Tool(s, "sleep", "Takes a while.", func(ctx context.Context, in struct {
		Seconds int `json:"seconds"`
	}) (string, error) {
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
			return "rested", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
	server.Tool(s, "context", "Asks the model, and wants context.", func(ctx context.Context, _ nothing) (string, error) {
		q := says("hm?")
		q.IncludeContext = "thisServer"
		res, err := server.Sample(ctx, "q", q)
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	server.Prompt(s, "ask", "Asks for a name.", func(ctx context.Context, _ nothing) (string, error) {
		n, err := server.Ask[named](ctx, "q", "name?")
		return n.Name, err
	})
	return s
}

// older returns the definition of an upstream of 2025-11-25.
func older(name string, w *wires) hub.Definition {
	return hub.Definition{Name: name, Target: asker(), Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125, Tap: w.tap}}}
}

// bubble runs a test with fake time, over a gateway with two legacy upstreams.
func bubble(t *testing.T, o gateway.Options, test func(t *testing.T, g *gateway.Gateway, w *wires), change ...func(*hub.Definition)) {
	synctest.Test(t, func(t *testing.T) {
		w := new(wires)
		definitions := []hub.Definition{older("a", w), older("b", w)}
		for _, f := range change {
			f(&definitions[0])
		}
		h := hubOf(t, hub.Options{}, definitions...)
		settle(t, h)
		g := gatewayOf(t, h, o)
		test(t, g, w)
	})
}

// request returns a modern request of a client with all capabilities.
func request(who, params string) *mcp.Request {
	return &mcp.Request{
		Method: mcp.MethodCallTool, Params: json.RawMessage(params), Revision: mcp.LatestRevision, Principal: mcp.Principal{ID: who},
		ClientCapabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`),
	}
}

// asks sends a request that must be answered by questions, and returns their keys and the state.
func asks(t *testing.T, g *gateway.Gateway, req *mcp.Request) (keys []string, state string) {
	t.Helper()
	res, err := g.ServeMCP(t.Context(), req)
	if err != nil || res.Type != mcp.ResultInputRequired {
		t.Fatalf("%+v, %v", res, err)
	}
	asked := res.Value.(*mcp.InputRequiredResult)
	for key := range asked.InputRequests {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, *asked.RequestState
}

// answered returns the request with an answer to each question.
func answered(req *mcp.Request, state string, keys ...string) *mcp.Request {
	responses := map[string]any{}
	for _, key := range keys {
		responses[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
	}
	raw, _ := json.Marshal(responses)
	retry := *req
	retry.Params = fmt.Appendf(nil, `%s,"inputResponses":%s,"requestState":%q}`, strings.TrimSuffix(string(req.Params), "}"), raw, state)
	return &retry
}

// text returns the text of a tool's result.
func text(t *testing.T, res *mcp.Result, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if r, ok := res.Value.(*mcp.CallToolResult); ok {
		return r.Content[0].Text
	}
	var r mcp.CallToolResult
	if err := json.Unmarshal(res.Raw, &r); err != nil || len(r.Content) == 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	return r.Content[0].Text
}

const askOnce = `{"name":"a__ask","arguments":{}}`

// On a shared connection a client gets the questions of its own call while another client's
// question is open, and both are answered in any order.
func TestSharedConnection(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		asker := func(who string) *mcp.Request {
			return request(who, fmt.Sprintf(`{"name":"a__ask","arguments":{"tag":%q,"times":2}}`, who))
		}
		ada, eve := asker("ada"), asker("eve")
		adaKeys, adaState := asks(t, g, ada)
		start := time.Now()
		eveKeys, eveState := asks(t, g, eve)
		if waited := time.Since(start); waited > 5*time.Second {
			t.Errorf("the second call waits %v for a user of another client", waited)
		}
		adaKeys, adaState = asks(t, g, answered(ada, adaState, adaKeys...))
		eveKeys, eveState = asks(t, g, answered(eve, eveState, eveKeys...))
		res, err := g.ServeMCP(t.Context(), answered(eve, eveState, eveKeys...))
		if got := text(t, res, err); got != "eveAda.Ada." {
			t.Errorf("the second call: %s", got)
		}
		res, err = g.ServeMCP(t.Context(), answered(ada, adaState, adaKeys...))
		if got := text(t, res, err); got != "adaAda.Ada." {
			t.Errorf("the first call: %s", got)
		}
	})
}

func TestSerializedCalls(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		var calls sync.WaitGroup
		for _, who := range []string{"ada", "bob", "cyd"} {
			calls.Go(func() {
				req := request(who, fmt.Sprintf(`{"name":"a__ask","arguments":{"tag":%q,"times":2}}`, who))
				keys, state := asks(t, g, req)
				time.Sleep(time.Minute)
				keys, state = asks(t, g, answered(req, state, keys...))
				res, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
				if got := text(t, res, err); got != who+"Ada.Ada." {
					t.Error(got)
				}
			})
		}
		calls.Wait()
	}, func(d *hub.Definition) { d.Options.Wire.SerializeAsks = true })
}

// The limits of calls do not include the time for answers.
func TestLimitsOfCalls(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		time.Sleep(5 * time.Minute)
		res, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
		if got := text(t, res, err); got != "Ada." {
			t.Error(got)
		}
		res, err = g.ServeMCP(t.Context(), request("ada", `{"name":"a__sleep","arguments":{"seconds":9}}`))
		if got := text(t, res, err); got != "rested" {
			t.Error(got)
		}
		began := time.Now()
		res, err = g.ServeMCP(t.Context(), request("ada", `{"name":"a__sleep","arguments":{"seconds":60}}`))
		if got := text(t, res, err); got != "the server a has not answered within 10s" || time.Since(began) != 10*time.Second {
			t.Errorf("%s, after %v", got, time.Since(began))
		}
	}, func(d *hub.Definition) { d.Total = 10 * time.Second })
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		req := request("ada", askOnce)
		keys, state := asks(t, g, req)
		time.Sleep(5 * time.Minute)
		res, err := g.ServeMCP(t.Context(), answered(req, state, keys...))
		if got := text(t, res, err); got != "Ada." {
			t.Error(got)
		}
		res, err = g.ServeMCP(t.Context(), request("ada", `{"name":"a__sleep","arguments":{"seconds":60}}`))
		if got := text(t, res, err); !strings.Contains(got, "no sign of life for 10s") {
			t.Error(got)
		}
	}, func(d *hub.Definition) { d.Idle = 10 * time.Second })
}

// A legacy upstream may ask for context that its caller does not support: that part of the question
// is removed.
func TestIncludeContext(t *testing.T) {
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		req := request("ada", `{"name":"a__context","arguments":{}}`)
		res, err := g.ServeMCP(t.Context(), req)
		if err != nil || res.Type != mcp.ResultInputRequired {
			t.Fatalf("%+v, %v", res, err)
		}
		for _, q := range res.Value.(*mcp.InputRequiredResult).InputRequests {
			if strings.Contains(string(q.Params), "includeContext") {
				t.Errorf("%s", q.Params)
			}
		}
		able := request("bob", `{"name":"b__context","arguments":{}}`)
		able.ClientCapabilities = json.RawMessage(`{"sampling":{"context":{}}}`)
		res, err = g.ServeMCP(t.Context(), able)
		if err != nil || res.Type != mcp.ResultInputRequired {
			t.Fatalf("%+v, %v", res, err)
		}
		for _, q := range res.Value.(*mcp.InputRequiredResult).InputRequests {
			if !strings.Contains(string(q.Params), `"includeContext":"thisServer"`) {
				t.Errorf("%s", q.Params)
			}
		}
	})
}

// A legacy server may ask for roots without params. The question reaches the client with empty
// params, because the official Go SDK cannot read it without.
func TestQuestionWithoutParams(t *testing.T) {
	bare := func(d *hub.Definition) { d.Target = bareRoots{asker()} }
	bubble(t, gateway.Options{}, func(t *testing.T, g *gateway.Gateway, _ *wires) {
		res, err := g.ServeMCP(t.Context(), request("ada", askOnce))
		if err != nil || res.Type != mcp.ResultInputRequired {
			t.Fatalf("%+v, %v", res, err)
		}
		for _, q := range res.Value.(*mcp.InputRequiredResult).InputRequests {
			if q.Method != mcp.MethodListRoots || string(q.Params) != "{}" {
				t.Errorf("%s %s", q.Method, q.Params)
			}
		}
	}, bare)
}

// bareRoots is an upstream with a tool that asks for the roots without params.
type bareRoots struct{ *server.Server }

func (s bareRoots) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodCallTool {
		return s.Server.ServeMCP(ctx, req)
	}
	ask := map[string]mcp.InputRequest{"roots": {Method: mcp.MethodListRoots}}
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{InputRequests: ask}}, nil
}

// A user who declines to open a URL ends the call.
func TestDeclinedVisit(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "up", Target: newUpstream(), Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}}})
	u := &user{action: mcp.ElicitDecline}
	for _, down := range []mcp.Revision{mcp.Revision20251125, mcp.Revision20260728} {
		o := u.options()
		o.Wire.Revision = down
		_, err := client.Call[string](t.Context(), dial(t, g, o), "up__visit_first", nil)
		if failed, ok := errors.AsType[*client.ToolError](err); !ok || !strings.Contains(failed.Error(), "did not agree to open") {
			t.Errorf("%s: %v", down, err)
		}
		if _, err := client.Call[string](t.Context(), dial(t, g, o), "up__forget_visit", nil); err != nil {
			t.Error(err)
		}
	}
}
