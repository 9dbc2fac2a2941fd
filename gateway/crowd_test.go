package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
)

// crowdMember is a client that makes calls which ask its user. Each question carries the client's
// name.
type crowdMember struct {
	name   string
	c      *client.Client
	wrong  atomic.Int64 // questions of another client
	useAsk func(ctx context.Context, text string) (string, error)
}

// newCrowdMember dials a client with its own user. Revisions before 2025-06-18 have no elicitation,
// so their calls ask for sampling.
func newCrowdMember(t *testing.T, f *front, up, down end, name string) *crowdMember {
	a := &crowdMember{name: name}
	note := func(question string) {
		if !strings.Contains(question, name) {
			a.wrong.Add(1)
		}
	}
	o := client.Options{Answers: client.Answers{
		Elicit: func(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
			note(q.Message)
			return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte(fmt.Sprintf(`{"username":%q,"email":"x@example.com"}`, name))}, nil
		},
		Sample: func(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			note(p.Messages[0].Content[0].Text)
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text(name)}}, nil
		},
	}}
	p := &pair{up: up, down: down, older: min(up.revision, down.revision)}
	a.c = p.dial(t, f, o)
	tool, key := "up__test_elicitation", "message"
	if p.older.Known() && p.older < mcp.Revision20250618 {
		tool, key = "up__test_sampling", "prompt"
	}
	a.useAsk = func(ctx context.Context, text string) (string, error) {
		return client.Call[string](ctx, a.c, tool, map[string]string{key: text})
	}
	return a
}

// repeatAsks makes calls on several goroutines, and returns what went wrong.
func (a *crowdMember) repeatAsks(ctx context.Context, calls, parallel int) (failures []string) {
	var mu sync.Mutex
	var work sync.WaitGroup
	var next atomic.Int64
	for range parallel {
		work.Go(func() {
			for n := next.Add(1); n <= int64(calls); n = next.Add(1) {
				got, err := a.useAsk(ctx, fmt.Sprintf("%s asks %d", a.name, n))
				if err != nil || !strings.Contains(got, a.name) {
					mu.Lock()
					failures = append(failures, fmt.Sprintf("%s, call %d: %q, %v", a.name, n, got, err))
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	return failures
}

// Two clients that use one shared upstream at the same time get all of their own questions and no
// other ones, in every pair of eras and transports.
func TestCrowdOfAskers(t *testing.T) {
	const calls = 40
	for _, up := range ends() {
		t.Run(up.String(), func(t *testing.T) {
			t.Parallel()
			for _, down := range ends() {
				t.Run(down.String(), func(t *testing.T) {
					f := newFront(t, up) // a new one, since it learns which tools ask
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
					defer cancel()
					var work sync.WaitGroup
					for _, name := range []string{"ada", "bob"} {
						a := newCrowdMember(t, f, up, down, name)
						work.Go(func() {
							for _, failure := range a.repeatAsks(ctx, calls, 3) {
								t.Error(failure)
							}
							if n := a.wrong.Load(); n > 0 {
								t.Errorf("%s was asked %d questions of another client", name, n)
							}
						})
					}
					work.Wait()
				})
			}
		})
	}
}

// A question that a user reads does not hold up the calls of another client, also if the server's
// calls run one at a time.
func TestReadersDelayNoOthers(t *testing.T) {
	up, down := end{mcp.Revision20251125, false}, end{mcp.Revision20251125, true}
	for _, serialize := range []bool{false, true} {
		t.Run(fmt.Sprint("serialize ", serialize), func(t *testing.T) {
			h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: target(t, up), Options: client.Options{
				Wire: client.Wire{Revision: up.revision, SerializeAsks: serialize},
			}})
			settle(t, h)
			f := &front{gateway: gatewayOf(t, h, gateway.Options{})}
			f.web = serveHTTP(t, f.gateway)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			reading, read := make(chan struct{}), make(chan struct{})
			p := &pair{up: up, down: down}
			slow := p.dial(t, f, client.Options{Answers: client.Answers{
				Elicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
					close(reading)
					select {
					case <-read:
					case <-ctx.Done():
					}
					return &mcp.ElicitResult{Action: mcp.ElicitDecline}, nil
				},
			}})
			done := make(chan error, 1)
			go func() {
				_, err := client.Call[string](ctx, slow, "up__test_elicitation", map[string]string{"message": "Who?"})
				done <- err
			}()
			select {
			case <-reading:
			case err := <-done:
				t.Fatal(err)
			}
			for _, failure := range newCrowdMember(t, f, up, down, "bob").repeatAsks(ctx, 5, 1) {
				t.Error(failure)
			}
			close(read)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// Two clients of one principal, which a gateway cannot tell apart, get their own questions only.
func TestAskersOfOnePrincipal(t *testing.T) {
	down := end{mcp.LatestRevision, true}
	for _, up := range []end{{mcp.Revision20251125, false}, {mcp.Revision20251125, true}, {mcp.Revision20241105, true}} {
		t.Run(up.String(), func(t *testing.T) {
			t.Parallel()
			f := newFront(t, up)
			f.web = serveHTTP(t, mcp.Chain(f.gateway, func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
					own := *req
					own.Principal = mcp.Principal{ID: "the same user"}
					return next.ServeMCP(ctx, &own)
				})
			}))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			first := newCrowdMember(t, f, up, down, "eve")
			for _, failure := range first.repeatAsks(ctx, 1, 1) { // the hub learns that the tool asks
				t.Fatal(failure)
			}
			var work sync.WaitGroup
			for _, name := range []string{"ada", "bob"} {
				a := newCrowdMember(t, f, up, down, name)
				work.Go(func() {
					for _, failure := range a.repeatAsks(ctx, 40, 3) {
						t.Error(failure)
					}
					if n := a.wrong.Load(); n > 0 {
						t.Errorf("%s was asked %d questions of another client", name, n)
					}
				})
			}
			work.Wait()
		})
	}
}
