package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

type addends struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Total int `json:"total"`
}

var acmeSum = mcp.Method[addends, total]{Name: "acme/sum"}

// answering are the options of a client that answers acme/sum, and the extension that says so.
func answering() client.Options {
	return client.Options{
		Logger:     quiet,
		Extensions: []mcp.Extension{{ID: "com.acme/sum", InputRequests: map[string]mcp.ClientCapabilities{"acme/sum": {}}}},
		Answers: client.Answers{
			Requests: []client.RequestHandler{
				client.OnRequest(mcp.Method[mcp.None, mcp.None]{Name: "acme/other"}, func(context.Context, mcp.None) (mcp.None, error) {
					return mcp.None{}, errors.New("this is not for me")
				}),
				client.OnRequest(acmeSum, func(_ context.Context, p addends) (total, error) {
					if p.A < 0 {
						return total{}, mcp.InvalidParams("a is negative")
					}
					return total{p.A + p.B}, nil
				}),
			},
			Handler: mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
				return raw(`{"by":"handler"}`), nil
			}),
		},
	}
}

// What a server asks has typed handlers, as what it is asked has.
func TestOnRequest(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		for _, test := range []struct{ name, method, params, want string }{
			{"typed", "acme/sum", `{"a":1,"b":2}`, `{"total":3}`},
			{"what is left", "acme/rest", `{}`, `{"by":"handler"}`},
		} {
			t.Run(test.name, func(t *testing.T) {
				if got, err := asked(t, revision, test.method, test.params); err != nil || got != test.want {
					t.Errorf("got %s, %v", got, err)
				}
			})
		}
	})
}

func TestOnRequestRefuses(t *testing.T) {
	l := &fakeDialer{handler: handlers{}}
	dialFake(t, l, answering())
	for params, want := range map[string]string{`{"a":-1}`: "a is negative", `{"a":"x"}`: "acme/sum: "} {
		_, err := l.inbound().ServeMCP(context.Background(), &mcp.Request{Method: "acme/sum", Params: json.RawMessage(params)})
		var refused *mcp.Error
		if !errors.As(err, &refused) || refused.Code != -32602 || !strings.HasPrefix(refused.Message, want) {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// asked returns the answer that a server over a wire of the revision gets for its question.
func asked(t *testing.T, revision mcp.Revision, method, params string) (string, error) {
	var answer string
	h := asking{
		handlers: tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			if answer = param(req, "inputResponses"); answer != "" {
				return raw(done), nil
			}
			return asks(fmt.Sprintf(`{"inputRequests":{"q":{"method":%q,"params":%s}}}`, method, params)), nil
		}),
		kinds: []mcp.Extension{{ID: "com.acme/sum", InputRequests: map[string]mcp.ClientCapabilities{
			"acme/sum": {Extensions: map[string]json.RawMessage{"com.acme/sum": json.RawMessage("{}")}}, "acme/rest": {}}}},
	}
	opts := answering()
	opts.Wire.Revision = revision
	opts.Wire.Tap = mcptest.ClientTap(t, mcptest.SentOnly(), mcptest.WithoutChecks("schema")) // the schema has no answers of extensions
	_, err := client.Call[string](context.Background(), connect(t, h, opts), "t", nil)
	if len(answer) > len(`{"q":}`) {
		answer = answer[len(`{"q":`) : len(answer)-1]
	}
	return answer, err
}

type asking struct {
	handlers
	kinds []mcp.Extension
}

func (a asking) Extensions() []mcp.Extension { return a.kinds }
