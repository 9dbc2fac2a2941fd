package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// askedGateway is a gateway whose questions are asked in the console, too.
type askedGateway struct {
	asks    *control.Asks
	api     http.Handler
	handler mcp.Handler

	mu      sync.Mutex
	records []audit.Record // of questions
}

// outcomes returns the outcomes of the questions so far, with the side that answered.
func (g *askedGateway) outcomes() (all []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		all = append(all, strings.TrimSpace(r.Client+" "+r.Server+"."+r.Name+" "+r.Outcome+" "+r.By))
	}
	return all
}

// newAskedGateway returns a gateway to the server everything, which speaks a revision.
func newAskedGateway(t *testing.T, upstream mcp.Revision) *askedGateway {
	t.Helper()
	h := hub.New(nil)
	h.Apply([]hub.Definition{{Name: "everything", Target: everything.New(), Options: client.Options{Wire: client.Wire{Revision: upstream}}}}, "the test begins")
	h.Settle(t.Context())
	core := gateway.New(h, nil)
	life, end := context.WithCancel(context.Background())
	calls := control.NewCalls(life, h, nil)
	g := &askedGateway{asks: calls.Asks, handler: mcp.Chain(core, calls.Asks.Middleware())}
	g.asks.Record = func(r audit.Record) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.records = append(g.records, r)
	}
	g.api = control.ConsoleAPI(control.Running{Life: life, Controller: &controller{h, nil}, Hub: h, Calls: calls})
	t.Cleanup(func() {
		end()
		if err := errors.Join(calls.Close(), core.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// dial connects a client. elicit answers its questions; nil means that it cannot be asked.
func (g *askedGateway) dial(t *testing.T, r mcp.Revision, elicit func(ctx context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error)) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), g.handler, &client.Options{Info: mcp.Implementation{Name: "cursor", Version: "1"}, Wire: client.Wire{Revision: r}, Answers: client.Answers{Elicit: elicit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask waits for the only open question, with a kind.
func (g *askedGateway) ask(t *testing.T) (found control.Ask) {
	t.Helper()
	polltest.Until(t, "a question", func() bool {
		all := askAPI[control.AskList](t, g.api, "GET", "/v1/asks", "").Asks
		if len(all) == 1 {
			found = all[0]
		}
		return len(all) == 1
	})
	return found
}

// call calls the tool that asks for a name and an address, and returns the text of its result.
func callAsking(t *testing.T, c *client.Client) (text func() string) {
	t.Helper()
	result := make(chan string, 1)
	go func() {
		res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "everything__test_elicitation", Arguments: json.RawMessage(`{"message":"Who are you?"}`)})
		result <- fmt.Sprintf("%+v %v", res, err)
	}()
	return func() string { return <-result }
}

const (
	adaHere = `{"action":"accept","content":"{\"username\":\"ada\",\"email\":\"ada@here.example\"}"}`
	adaAway = `{"username":"ada","email":"ada@client.example"}`
)

// eachEra runs a test with each era of client and server.
func eachEra(t *testing.T, test func(t *testing.T, clientRevision, upstream mcp.Revision)) {
	for _, c := range []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision} {
		for _, u := range []mcp.Revision{mcp.Revision20251125, mcp.LatestRevision} {
			t.Run(fmt.Sprintf("%s to %s", c, u), func(t *testing.T) {
				t.Parallel()
				test(t, c, u)
			})
		}
	}
}

// The question of a client's call is listed with its origin. The user answers it here before the
// client does, and the client gets the result. The question of a legacy client is withdrawn.
func TestClientAskAnsweredHere(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, r, upstream mcp.Revision) {
		g := newAskedGateway(t, upstream)
		answeredHere := make(chan struct{})
		c := g.dial(t, r, func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if r.Modern() { // it cannot be told, so its user answers late
				<-answeredHere
				return &mcp.ElicitResult{Action: mcp.ElicitCancel}, nil
			}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
		text := callAsking(t, c)
		ask := g.ask(t)
		if ask.Client != "cursor" || ask.Server != "everything" || ask.Name != "test_elicitation" || ask.Method != mcp.MethodCallTool || ask.Message != "Who are you?" ||
			ask.Form == nil || ask.Expires.IsZero() || ask.Stays != r.Modern() || ask.Obstacle != "" {
			t.Errorf("%+v", ask)
		}
		path := fmt.Sprintf("/v1/asks/%d", ask.ID)
		if wrong := askAPI[map[string]string](t, g.api, "POST", path, `{"action":"accept","content":"{}"}`); !strings.Contains(wrong["error"], "missing required") {
			t.Errorf("a wrong answer: %v", wrong)
		}
		if answer := askAPI[map[string]string](t, g.api, "POST", path, adaHere); answer["error"] != "" {
			t.Error(answer)
		}
		if late := askAPI[map[string]string](t, g.api, "POST", path, adaHere); late["error"] == "" {
			t.Error("a question is answered twice")
		}
		close(answeredHere)
		if result := text(); !strings.Contains(result, "ada@here.example") {
			t.Error(result)
		}
		if got := g.outcomes(); !slices.Equal(got, []string{"cursor everything.test_elicitation accept console"}) {
			t.Errorf("%q", got)
		}
	})
}

// A question that the client answers first disappears here.
func TestClientAskAnsweredThere(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, r, upstream mcp.Revision) {
		g := newAskedGateway(t, upstream)
		answer := make(chan struct{})
		c := g.dial(t, r, func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			<-answer
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(adaAway)}, nil
		})
		text := callAsking(t, c)
		ask := g.ask(t)
		close(answer)
		if result := text(); !strings.Contains(result, "ada@client.example") {
			t.Error(result)
		}
		if all := g.asks.List().Asks; len(all) != 0 {
			t.Errorf("%+v", all)
		}
		if late := askAPI[map[string]string](t, g.api, "POST", fmt.Sprintf("/v1/asks/%d", ask.ID), adaHere); late["error"] == "" {
			t.Error("a question is answered twice")
		}
		if got := g.outcomes(); !slices.Equal(got, []string{"cursor everything.test_elicitation accept client"}) {
			t.Errorf("%q", got)
		}
	})
}

// By choice, the user answers here for a client that cannot be asked.
func TestAnswersForAll(t *testing.T) {
	t.Parallel()
	eachEra(t, func(t *testing.T, r, upstream mcp.Revision) {
		g := newAskedGateway(t, upstream)
		c := g.dial(t, r, nil)
		if result := callAsking(t, c)(); strings.Contains(result, "ada") || len(g.asks.List().Asks) != 0 {
			t.Errorf("without the choice: %s", result)
		}
		askAPI[map[string]string](t, g.api, "POST", "/v1/asks", `{"answersForAll":true}`)
		text := callAsking(t, c)
		ask := g.ask(t)
		if !ask.IsAskedHere || !g.asks.List().AnswersForAll {
			t.Errorf("%+v", ask)
		}
		askAPI[map[string]string](t, g.api, "POST", fmt.Sprintf("/v1/asks/%d", ask.ID), adaHere)
		if result := text(); !strings.Contains(result, "ada@here.example") {
			t.Error(result)
		}
	})
}

// The question of a call that is cancelled disappears, if its client can tell.
func TestClientAskCancelled(t *testing.T) {
	t.Parallel()
	g := newAskedGateway(t, mcp.Revision20251125)
	c := g.dial(t, mcp.Revision20251125, func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, mcp.CallToolParams{Name: "everything__test_elicitation", Arguments: json.RawMessage(`{"message":"Who?"}`)})
		failed <- err
	}()
	g.ask(t)
	cancel()
	if err := <-failed; err == nil {
		t.Error("the cancelled call has a result")
	}
	polltest.Until(t, "no question", func() bool { return len(g.asks.List().Asks) == 0 })
	if got := g.outcomes(); !slices.Equal(got, []string{"cursor everything.test_elicitation unanswered"}) {
		t.Errorf("%q", got)
	}
}

// Another user cannot fetch the result of a call that was answered here.
func TestResultOfAnsweredCallIsPrivate(t *testing.T) {
	t.Parallel()
	g := newAskedGateway(t, mcp.LatestRevision)
	serve := func(principal, params string) (*mcp.Result, error) {
		req := &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(params), Revision: mcp.LatestRevision, ClientCapabilities: json.RawMessage(`{"elicitation":{}}`), Principal: mcp.Principal{ID: principal}}
		return g.handler.ServeMCP(t.Context(), req)
	}
	res, err := serve("ada", `{"name":"everything__test_elicitation","arguments":{"message":"Who?"}}`)
	if err != nil || res.Type != mcp.ResultInputRequired {
		t.Fatal(res, err)
	}
	ask := g.ask(t)
	askAPI[map[string]string](t, g.api, "POST", fmt.Sprintf("/v1/asks/%d", ask.ID), adaHere)
	var asked mcp.InputRequiredResult
	if err := mcp.Decode(res.Raw, &asked); err != nil || asked.RequestState == nil {
		t.Fatalf("%s %v", res.Raw, err)
	}
	again, _ := json.Marshal(map[string]any{"name": "everything__test_elicitation", "arguments": map[string]string{"message": "Who?"}, "requestState": asked.RequestState})
	if res, err := serve("bob", string(again)); err == nil {
		t.Errorf("another user gets %s", res.Raw)
	}
	if res, err := serve("ada", string(again)); err != nil || !strings.Contains(string(res.Raw), "ada@here.example") {
		t.Error(res, err)
	}
}
