package client_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

var quiet = slog.New(slog.DiscardHandler)

// asker asks one form question and returns the answer as text, in either era: the edge turns its result into a live
// question for legacy clients.
func asker(params string) handlers {
	return tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		if answers := param(req, "inputResponses"); answers != "" {
			text, _ := json.Marshal(answers)
			return raw(`{"content":[{"type":"text","text":` + string(text) + `}]}`), nil
		}
		return asks(`{"inputRequests":{"q":{"method":"elicitation/create","params":` + params + `}}}`), nil
	})
}

func TestElicitation(t *testing.T) {
	const form = `{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":7}},"required":["name"]}}`
	for _, test := range []struct {
		name   string
		answer *mcp.ElicitResult
		want   string
	}{
		{"accept, with the default", &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"name":"Bob"}`)}, `{"q":{"action":"accept","content":{"name":"Bob","age":7}}}`},
		{"decline, without content", &mcp.ElicitResult{Action: mcp.ElicitDecline, Content: json.RawMessage(`{"name":"Bob"}`)}, `{"q":{"action":"decline"}}`},
		{"cancel", &mcp.ElicitResult{Action: mcp.ElicitCancel}, `{"q":{"action":"cancel"}}`},
		{"nil is cancel", nil, `{"q":{"action":"cancel"}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			eras(t, func(t *testing.T, revision mcp.Revision) {
				var question client.ElicitRequest
				c := connect(t, asker(form), client.Options{Wire: client.Wire{Revision: revision}, Answers: client.Answers{Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
					question = *q
					return test.answer, nil
				}}})
				got, err := client.Call[string](context.Background(), c, "t", nil)
				if err != nil || got != test.want {
					t.Errorf("got %s, %v; want %s", got, err, test.want)
				}
				if question.Server != "fake" || question.Message != "Who?" {
					t.Errorf("the user saw %+v", question)
				}
			})
		})
	}
}

func TestElicitationByURL(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		c := connect(t, asker(`{"mode":"url","message":"Log in","url":"https://x.example/login"}`), client.Options{
			Wire: client.Wire{Revision: revision}, Name: "bank", Answers: client.Answers{
				ElicitURL: true,
				Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
					if q.Server != "bank" || q.URL != "https://x.example/login" {
						t.Errorf("the user saw %+v", q)
					}
					return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(`{"not":"sent"}`)}, nil
				},
			},
		})
		got, err := client.Call[string](context.Background(), c, "t", nil)
		if err != nil || got != `{"q":{"action":"accept"}}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestOneQuestionAtATime(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		var open atomic.Int32
		c := connect(t, asker(`{"message":"?"}`), client.Options{Wire: client.Wire{Revision: revision}, Answers: client.Answers{Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
			if open.Add(1) > 1 {
				t.Error("two questions at once")
			}
			defer open.Add(-1)
			return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
		}}})
		var calls sync.WaitGroup
		for range 10 {
			calls.Go(func() {
				if _, err := client.Call[string](context.Background(), c, "t", nil); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}

func TestCapabilitiesAreThoseOfTheHandlers(t *testing.T) {
	elicit := accept(`{}`)
	sample := func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) { return nil, nil }
	for _, test := range []struct {
		opts client.Options
		want string
	}{
		{client.Options{}, `{}`},
		{client.Options{Answers: client.Answers{Elicit: elicit}}, `{"elicitation":{"form":{}}}`},
		{client.Options{Answers: client.Answers{Elicit: elicit, ElicitURL: true}}, `{"elicitation":{"form":{},"url":{}}}`},
		{client.Options{Answers: client.Answers{ElicitURL: true, SampleTools: true}}, `{}`},
		{client.Options{Answers: client.Answers{Sample: sample}}, `{"sampling":{}}`},
		{client.Options{Answers: client.Answers{Sample: sample, SampleTools: true}}, `{"sampling":{"tools":{}}}`},
		{client.Options{Answers: client.Answers{Roots: client.FixedRoots()}}, `{"roots":{}}`},
		{client.Options{Extensions: []mcp.Extension{{ID: "acme/x"}}}, `{"extensions":{"acme/x":{}}}`},
		{client.Options{Answers: client.Answers{Capabilities: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}}}, `{"elicitation":{}}`},
	} {
		var got string
		c := connect(t, tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			got = string(req.ClientCapabilities)
			return raw(done), nil
		}), test.opts)
		if _, err := client.Call[string](context.Background(), c, "t", nil); err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("declared %s, want %s", got, test.want)
		}
	}
}

func TestHandlerAnswersTheRest(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		c := connect(t, asker(`{"message":"Who?"}`), client.Options{
			Wire: client.Wire{Revision: revision},
			Answers: client.Answers{
				Capabilities: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}},
				Handler: mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
					if req.Method != mcp.MethodElicit || param(req, "message") != `"Who?"` {
						t.Errorf("got %s %s", req.Method, req.Params)
					}
					return raw(`{"action":"decline"}`), nil
				}),
			},
		})
		got, err := client.Call[string](context.Background(), c, "t", nil)
		if err != nil || got != `{"q":{"action":"decline"}}` {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestAnswersOfAHandler(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer *mcp.Result
		want   string
		err    string
	}{
		{"a value", &mcp.Result{Value: mcp.ElicitResult{Action: mcp.ElicitDecline}}, `{"q":{"action":"decline"}}`, ""},
		{"nothing in it", &mcp.Result{}, `{"q":{}}`, ""},
		{"nothing", nil, "", "the handler returned nothing"},
		{"a question", asks(`{"requestState":"s"}`), "", "cannot ask back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialWire(t, asker(`{}`), client.Options{Answers: client.Answers{Handler: mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
				return test.answer, nil
			})}})
			got, err := client.Call[string](t.Context(), c, "t", nil)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
