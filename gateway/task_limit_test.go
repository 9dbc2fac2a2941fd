package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// newWorkServer returns a server with a task that asks, and then works for ten minutes. It reports
// each minute unless it is silent.
func newWorkServer(ended chan<- error) *server.Server {
	s := server.New("up", "1", &server.Options{Logger: quiet})
	server.Tool(s, "work", "", func(ctx context.Context, in struct {
		Silent bool `json:"silent,omitzero"`
	}) (string, error) {
		answer, err := server.Ask[struct{ Name string }](ctx, "who", "Who are you?")
		for i := 0; err == nil && i < 10; i++ {
			if !in.Silent {
				server.Progress(ctx, float64(i), 10, fmt.Sprint("minute ", i))
			}
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return "", ctx.Err()
			}
		}
		return "Hello, " + answer.Name, err
	}, server.ToolOptions{Task: server.TaskOptions{Mode: server.TaskMust, Poll: time.Second}})
	return s
}

// The limits of an upstream count for a task as for a call: Total bounds the whole task, without
// the time in which the user thinks, and Idle the time without a report of a task of 2025-11-25.
func TestLimitsOfTasks(t *testing.T) {
	for _, upstream := range erasOfTasks {
		for _, tt := range []struct {
			name, arguments string
			policy          hub.Policy
			want            string
		}{
			{"it reports", `{}`, hub.Policy{Idle: 2 * time.Minute, Total: 11 * time.Minute}, "Hello, Ada"},
			{"it takes too long", `{}`, hub.Policy{Total: 5 * time.Minute}, "has not answered within 5m0s"},
		} {
			t.Run(fmt.Sprintf("%s/%s", upstream, tt.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ended := make(chan error, 1)
					s := newWorkServer(ended)
					defer s.Close()
					h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: s, Policy: tt.policy, Options: client.Options{Wire: client.Wire{Revision: upstream}}})
					settle(t, h)
					c := dial(t, gatewayOf(t, h, gateway.Options{}), client.Options{Wire: client.Wire{Revision: mcp.Revision20250618}, Answers: client.Answers{
						Elicit: func(ctx context.Context, r *client.ElicitRequest) (*mcp.ElicitResult, error) {
							time.Sleep(9 * time.Minute) // shorter than a call waits for its client
							return answerAda(make(chan string, 1)).Elicit(ctx, r)
						}}})
					res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "up__work", Arguments: []byte(tt.arguments)})
					if err != nil || !strings.Contains(res.Content[0].Text, tt.want) {
						t.Fatalf("%+v, %v, want %q", res, err, tt.want)
					}
					if tt.policy.Total == 5*time.Minute {
						if cause := <-ended; cause == nil {
							t.Error("the task of the upstream goes on")
						}
					}
				})
			})
		}
	}
}
