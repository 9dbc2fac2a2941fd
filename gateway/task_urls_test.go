package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// slowVisit is a server of 2025-11-25 with a slow tool, which requires twice that the user opens a
// URL first.
type slowVisit struct{ calls int }

func (s *slowVisit) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.Result{Raw: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}, nil
	case mcp.MethodListTools:
		return &mcp.Result{Raw: json.RawMessage(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)}, nil
	case mcp.MethodCallTool:
	default:
		return nil, mcp.MethodNotFound(req.Method)
	}
	time.Sleep(time.Minute)
	if s.calls++; s.calls < 3 {
		return nil, &mcp.Error{Code: mcpwire.CodeURLElicitationRequired, Message: "m", Data: json.RawMessage(
			`{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://bank.test/","message":"Log in"}]}`)}
	}
	return &mcp.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"visited"}]}`)}, nil
}

// If a call has become a task, the URLs that its upstream requires are questions of the task, and
// the call is made again. If the client cannot be asked, the task fails and says why.
func TestTaskRequiresURL(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers bool
		action  mcp.ElicitAction
		calls   int
		want    string
	}{
		{"agreed", true, mcp.ElicitAccept, 3, "visited"},
		{"declined", true, mcp.ElicitDecline, 1, "the user did not agree to open the URL"},
		{"not declared", false, "", 1, "the server bank requires that the user opens a URL first, and the client cannot be asked: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &slowVisit{}
				h := hubOf(t, hub.Options{}, hub.Definition{Name: "bank", Target: up, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}}})
				settle(t, h)
				var asked []string
				o := client.Options{}
				if tt.answers {
					o.Answers = client.Answers{ElicitURL: true, Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
						asked = append(asked, q.Message+" "+q.URL)
						return &mcp.ElicitResult{Action: tt.action}, nil
					}}
				}
				task := startTask(t, dial(t, gatewayOf(t, h, gateway.Options{TaskAfter: time.Second}), o), "bank__t")
				res, err := task.Wait(t.Context())
				got := ""
				if err != nil {
					got = err.Error()
				} else {
					got = res.Content[0].Text
				}
				if !strings.Contains(got, tt.want) || up.calls != tt.calls {
					t.Errorf("%d calls, then %q", up.calls, got)
				}
				if tt.answers && (len(asked) != 1 || asked[0] != "The server bank asks: Log in https://bank.test/") {
					t.Errorf("the user saw %q", asked)
				}
			})
		})
	}
}
