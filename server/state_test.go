package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// stateOf begins a call of a tool that asks for one name and returns its request state.
func stateOf(t testing.TB, h mcp.Handler, req *mcp.Request) string {
	t.Helper()
	res, err := h.ServeMCP(t.Context(), req)
	if err != nil || res.Type != mcp.ResultInputRequired {
		t.Fatalf("%+v, %v", res, err)
	}
	return *res.Value.(*mcp.InputRequiredResult).RequestState
}

// askName adds tools that ask for a name, and a resource and a prompt.
func askName(s *server.Server) {
	name := func(ctx context.Context) (string, error) { return server.Ask[string](ctx, "name", "?") }
	for _, tool := range []string{"t", "u"} {
		server.Tool(s, tool, "", func(ctx context.Context, _ anyArgs) (string, error) { return name(ctx) })
	}
	server.Prompt(s, "t", "", func(ctx context.Context, _ map[string]string) (string, error) { return name(ctx) })
	server.Resource(s, "x://t", "", func(ctx context.Context, _ struct{}) (string, error) { return name(ctx) })
}

func TestForeignState(t *testing.T) {
	s := newServer()
	askName(s)
	params := `{"name":"t","arguments":{"n":9007199254740993,"s":"\u00e9","x":1.50}}`
	state := stateOf(t, s, as("ann", request(mcp.MethodCallTool, params)))
	answers := map[string]json.RawMessage{"name": json.RawMessage(accept(`{"value":"Ann"}`))}
	foreign := "error -32602: requestState is not valid for this request: send the request again without it"
	flipped := []byte(state)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		what, principal, method, params, state, want string
	}{
		{"itself", "ann", mcp.MethodCallTool, params, state, textResult("Ann")},
		{"re-encoded arguments", "ann", mcp.MethodCallTool, `{"arguments":{"x":15e-1, "s":"é","n":9007199254740993.0},"name":"\u0074"}`, state, textResult("Ann")},
		{"another number", "ann", mcp.MethodCallTool, `{"name":"t","arguments":{"n":9007199254740992,"s":"é","x":1.50}}`, state, foreign},
		{"other arguments", "ann", mcp.MethodCallTool, `{"name":"t","arguments":{}}`, state, foreign},
		{"another tool", "ann", mcp.MethodCallTool, strings.Replace(params, `"t"`, `"u"`, 1), state, foreign},
		{"another principal", "bob", mcp.MethodCallTool, params, state, foreign},
		{"nobody", "", mcp.MethodCallTool, params, state, foreign},
		{"another method", "ann", mcp.MethodGetPrompt, `{"name":"t","arguments":{"n":"9007199254740993"}}`, state, foreign},
		{"a resource", "ann", mcp.MethodReadResource, `{"uri":"x://t"}`, state, foreign},
		{"changed", "ann", mcp.MethodCallTool, params, string(flipped), foreign},
		{"appended", "ann", mcp.MethodCallTool, params, state + "-TAMPERED", foreign},
		{"cut", "ann", mcp.MethodCallTool, params, state[:len(state)-4], foreign},
		{"empty", "ann", mcp.MethodCallTool, params, " ", foreign},
		{"huge", "ann", mcp.MethodCallTool, params, strings.Repeat("A", 1<<20), foreign},
	} {
		req := as(c.principal, request(c.method, ""))
		req.Params = retry(t, json.RawMessage(c.params), answers, c.state)
		if got := serve(t, s, req); got != c.want {
			t.Errorf("%s: %s", c.what, got)
		}
	}
	other := newServer()
	askName(other)
	req := as("ann", request(mcp.MethodCallTool, ""))
	req.Params = retry(t, json.RawMessage(params), answers, state)
	want(t, serve(t, other, req), foreign)
}

func TestReplicasShareState(t *testing.T) {
	keys := new(mcp.Keys)
	one, other := newServer(server.Options{Keys: keys}), newServer(server.Options{Keys: keys})
	askName(one)
	askName(other)
	state := stateOf(t, one, request(mcp.MethodCallTool, `{"name":"t"}`))
	req := request(mcp.MethodCallTool, "")
	req.Params = retry(t, json.RawMessage(`{"name":"t"}`), map[string]json.RawMessage{"name": json.RawMessage(accept(`{"value":"Ann"}`))}, state)
	want(t, serve(t, other, req), textResult("Ann"))
}

func TestExpiredState(t *testing.T) {
	for ttl, lives := range map[time.Duration]time.Duration{0: 15 * time.Minute, time.Minute: time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(server.Options{StateTTL: ttl})
			askName(s)
			state := stateOf(t, s, request(mcp.MethodCallTool, `{"name":"t"}`))
			req := request(mcp.MethodCallTool, "")
			req.Params = retry(t, json.RawMessage(`{"name":"t"}`), map[string]json.RawMessage{"name": json.RawMessage(accept(`{"value":"Ann"}`))}, state)
			time.Sleep(lives - time.Second)
			want(t, serve(t, s, req), textResult("Ann"))
			time.Sleep(time.Second)
			want(t, serve(t, s, req), "error -32602: requestState has expired: send the request again without it")
		})
	}
}

// TestLegacyStateDoesNotExpire: the edge waits for the answer itself, and no client sees the state.
func TestLegacyStateDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(server.Options{StateTTL: time.Second})
		askName(s)
		in := func(r mcp.Revision, req *mcp.Request) *mcp.Request { req.Revision = r; return req }
		retried := func(r mcp.Revision, state string) *mcp.Request {
			req := in(r, request(mcp.MethodCallTool, ""))
			req.Params = retry(t, json.RawMessage(`{"name":"t"}`), map[string]json.RawMessage{"name": json.RawMessage(accept(`{"value":"Ann"}`))}, state)
			return req
		}
		legacy := stateOf(t, s, in(mcp.Revision20251125, request(mcp.MethodCallTool, `{"name":"t"}`)))
		modern := stateOf(t, s, request(mcp.MethodCallTool, `{"name":"t"}`))
		time.Sleep(time.Hour)
		want(t, serve(t, s, retried(mcp.Revision20241105, legacy)), textResult("Ann"))
		want(t, serve(t, s, retried(mcp.LatestRevision, modern)), "error -32602: requestState has expired: send the request again without it")
		const foreign = "error -32602: requestState is not valid for this request: send the request again without it"
		want(t, serve(t, s, retried(mcp.Revision20251125, modern)), foreign) // expired state finds no other door
		want(t, serve(t, s, retried(mcp.LatestRevision, legacy)), foreign)
	})
}

func TestStateTooLarge(t *testing.T) {
	for most, fits := range map[int]int{0: 11 << 10, 4 << 10: 5 << 9, 64 << 10: 45 << 10} {
		stateTooLarge(t, most, fits)
	}
}

// stateTooLarge asks twice: an answer of so many bytes fits into the state, and one of a fifth more
// does not.
func stateTooLarge(t *testing.T, most, fits int) {
	s := newServer(server.Options{MaxState: most})
	if most == 0 {
		most = 16 << 10
	}
	server.Tool(s, "t", "", func(ctx context.Context, _ anyArgs) (string, error) {
		if _, err := server.Ask[string](ctx, "long", "?"); err != nil {
			return "", err
		}
		return server.Ask[string](ctx, "more", "?")
	})
	answer := func(n int) map[string]string {
		return map[string]string{"long": accept(fmt.Sprintf(`{"value":%q}`, strings.Repeat("x", n))), "more": accept(`{"value":"y"}`)}
	}
	got, a := ask(t, s, "t", answer(fits))
	want(t, got, textResult("y"))
	if n := len(a.states[1]); n > most || n < most*8/10 {
		t.Errorf("the state has %d bytes", n)
	}
	got, _ = ask(t, s, "t", answer(fits*6/5+1024))
	wantPart(t, got, "the answers and remembered steps of the call are too large")
	wantPart(t, got, `"isError":true`)
}

// TestStateWithoutQuestions rejects state also where the handler asks nothing.
func TestStateWithoutQuestions(t *testing.T) {
	s := newServer()
	server.Tool(s, "t", "", none)
	wantPart(t, serve(t, s, request(mcp.MethodCallTool, `{"name":"t","requestState":"x"}`)), "error -32602: requestState is not valid")
	want(t, serve(t, s, request(mcp.MethodCallTool, `{"name":"t","requestState":null,"inputResponses":null}`)), `{"content":[]}`)
}
