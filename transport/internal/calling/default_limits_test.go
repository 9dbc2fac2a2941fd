package calling_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// A request whose server never answers ends after the default limits, and is cancelled there. The
// connection serves other requests meanwhile and afterwards.
func TestDefaultLimits(t *testing.T) {
	beat := func(m jsonrpc.Message, f *fake) {
		for range 60 { // 30 hours
			time.Sleep(30 * time.Minute)
			f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
		}
	}
	for _, tt := range []struct {
		name     string
		progress bool
		own      [2]bool
		limit    timeout.Limit // 0: the request ends when ctx does
		after    time.Duration
	}{
		{"silent", false, [2]bool{}, timeout.Idle, time.Hour},
		{"with progress", true, [2]bool{}, timeout.Total, 24 * time.Hour},
		{"silent, with an idle limit of its own", false, [2]bool{true, false}, timeout.Total, 24 * time.Hour},
		{"silent, with limits of its own", false, [2]bool{true, true}, 0, 100 * time.Hour},
		{"with progress and a total limit of its own", true, [2]bool{false, true}, timeout.Idle, 31 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachRevision(t, func(t *testing.T, r mcp.Revision) {
				synctest.Test(t, func(t *testing.T) {
					c, f := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
						switch {
						case strings.Contains(string(m.Params), `"quick"`):
							f.reply(m, okResult)
						case tt.progress && m.Method == mcp.MethodCallTool:
							go beat(m, f)
						}
					})
					defer c.Close()
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
					defer cancel()
					req := callTool("slow")
					req.Notify = func(mcp.Notification) {}
					began, done := time.Now(), goCall(c, timeout.WithOwnLimits(ctx, tt.own[0], tt.own[1]), req)
					time.Sleep(time.Minute)
					if _, err := c.RoundTrip(ctx, callTool("quick")); err != nil {
						t.Error(err)
					}
					got := <-done
					if took := time.Since(began); took < tt.after || took > tt.after+time.Minute {
						t.Errorf("ended after %v, want %v", took, tt.after)
					}
					var late *timeout.DefaultError
					if errors.As(got.err, &late) != (tt.limit != 0) || late != nil && late.Limit != tt.limit || !errors.Is(got.err, context.DeadlineExceeded) {
						t.Errorf("got %v, want limit %v", got.err, tt.limit)
					}
					synctest.Wait()
					if !strings.HasSuffix(f.methods(), mcpwire.NotificationCancelled) {
						t.Errorf("the server got %s, want a cancellation at the end", f.methods())
					}
					if _, err := c.RoundTrip(t.Context(), callTool("quick")); err != nil {
						t.Error(err)
					}
					time.Sleep(31 * time.Hour) // the server ends its progress
				})
			})
		})
	}
}

// Subscriptions, and requests that wait for the end of a task, have no default limit. The time in
// which this side answers a question does not count.
func TestDefaultLimitsDoNotApply(t *testing.T) {
	for _, req := range []*mcp.Request{
		{Method: mcp.MethodListen, Params: []byte(`{"notifications":{"toolsListChanged":true}}`), Notify: func(mcp.Notification) {}},
		{Method: mcpwire.MethodTaskResult, Params: []byte(`{"taskId":"t"}`)},
	} {
		t.Run(req.Method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := connected(t, r26, nil, transport.ClientOptions{}, nil)
				defer c.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
				defer cancel()
				began := time.Now()
				_, err := c.RoundTrip(ctx, req)
				if took := time.Since(began); took != 100*time.Hour || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v after %v", err, took)
				}
			})
		})
	}
	t.Run("question", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			in := &recorder{answer: func(context.Context, *mcp.Request) (*mcp.Result, error) {
				time.Sleep(50 * time.Hour)
				return &mcp.Result{Raw: []byte(`{"action":"accept"}`)}, nil
			}}
			var call jsonrpc.ID
			c, _ := connected(t, r25, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
				switch m.Method {
				case mcp.MethodCallTool:
					call = m.ID
					f.send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`)
				case "": // the answer
					f.send(`{"jsonrpc":"2.0","id":%s,%s}`, call, okResult)
				}
			})
			defer c.Close()
			if _, err := c.RoundTrip(t.Context(), callTool("asks")); err != nil {
				t.Error(err)
			}
		})
	})
}

// Connect has no default limit: a server may take as long as its caller allows, and initialize is
// never cancelled.
func TestDefaultLimitsOfConnect(t *testing.T) {
	for _, r := range []mcp.Revision{r26, r25, ""} {
		t.Run(string(r), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, func(*fake, jsonrpc.Message) {})
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
				defer cancel()
				began := time.Now()
				_, err := overconn.Connect(ctx, f.near, &recorder{}, "", transport.ClientOptions{Revision: r, Logger: quiet})
				if took := time.Since(began); took != 3*time.Hour || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v after %v", err, took)
				}
				if strings.Contains(f.methods(), mcpwire.NotificationCancelled) {
					t.Errorf("the server got %s", f.methods())
				}
			})
		})
	}
}
