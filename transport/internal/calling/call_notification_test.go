package calling_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Progress goes to the call that it belongs to, with several in flight.
func TestProgressRouting(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		synctest.Test(t, func(t *testing.T) {
			const calls = 5
			var asked []jsonrpc.Message
			in := &recorder{}
			c, _ := connected(t, r, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
				if asked = append(asked, m); len(asked) < calls {
					return
				}
				for step := range 3 {
					for _, m := range asked {
						f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, rawjson.Lookup(rawjson.Lookup(m.Params, "_meta"), "progressToken"), step+1)
					}
				}
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}`)
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`)
				for _, m := range asked {
					f.reply(m, okResult)
				}
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":9}}`, asked[0].ID) // too late
			})
			defer c.Close()
			var wg sync.WaitGroup
			for range calls {
				wg.Go(func() {
					var got []string
					req := callTool("x")
					req.Notify = func(n mcp.Notification) {
						got = append(got, string(rawjson.Lookup(n.Params, "progress"))+"/"+string(rawjson.Lookup(n.Params, "progressToken")))
					}
					if _, err := c.RoundTrip(t.Context(), req); err != nil {
						t.Error(err)
					}
					tokens := map[string]bool{}
					for i, g := range got {
						step, token, _ := strings.Cut(g, "/")
						if tokens[token] = true; step != fmt.Sprint(i+1) {
							t.Errorf("got %v", got)
						}
					}
					if len(got) != 3 || len(tokens) != 1 {
						t.Errorf("got %v", got)
					}
				})
			}
			wg.Wait()
			synctest.Wait()
			want := `notifications/progress{"progressToken":99,"progress":1} notifications/progress{"progress":1} notifications/progress{"progressToken":` + asked[0].ID.String() + `,"progress":9}`
			if got := in.noted(); got != want {
				t.Errorf("to nobody: %s", got)
			}
		})
	})
}

// A log message on a shared channel names no request. It goes to the only call that asked for
// logs, and to the Inbound if several did.
func TestLogRouting(t *testing.T) {
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`
	for _, r := range []mcp.Revision{r26, r25} {
		for _, tt := range []struct {
			name          string
			asking, mute  int // calls with a log level, with and without one who listens; and one without level
			mine, nobodys int
		}{{"none", 0, 0, 0, 1}, {"one", 1, 0, 1, 0}, {"one who does not listen", 0, 1, 0, 1}, {"one who listens beside one who does not", 1, 1, 1, 0}, {"two", 2, 0, 0, 1}} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in := &recorder{}
					var held []jsonrpc.Message
					c, f := connected(t, r, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
						if m.Method == mcpwire.MethodSetLevel {
							f.reply(m, `"result":{}`)
							return
						}
						held = append(held, m)
					})
					defer c.Close()
					var mine atomic.Int32
					var done []<-chan called
					for i := range tt.asking + tt.mute + 1 {
						req := callTool("x")
						if i < tt.asking+tt.mute {
							req.LogLevel = mcp.LevelError
						}
						if i < tt.asking || i == tt.asking+tt.mute {
							req.Notify = func(mcp.Notification) { mine.Add(1) }
						}
						done = append(done, goCall(c, t.Context(), req))
						synctest.Wait()
					}
					f.send(log)
					synctest.Wait()
					for _, m := range held {
						f.reply(m, okResult)
					}
					for _, d := range done {
						if got := <-d; got.err != nil {
							t.Error(got.err)
						}
					}
					if int(mine.Load()) != tt.mine || strings.Count(in.noted(), "notifications/message") != tt.nobodys {
						t.Errorf("the calls got %d, nobody %s", mine.Load(), in.noted())
					}
				})
			})
		}
	}
}

// A slow listener delays no other one. Its queue is bounded and keeps the newest notifications.
func TestSlowListener(t *testing.T) {
	const sent = 3000
	c, _ := connected(t, r26, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
		if strings.Contains(string(m.Params), "slow") {
			for i := range sent {
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
			}
		}
		f.reply(m, okResult)
	})
	defer c.Close()
	release, first := make(chan struct{}), make(chan struct{})
	var got []string
	req := callTool("slow")
	req.Notify = func(n mcp.Notification) {
		if got = append(got, string(rawjson.Lookup(n.Params, "progress"))); len(got) == 1 {
			close(first)
			<-release
		}
	}
	slow := goCall(c, t.Context(), req)
	<-first
	for range 10 {
		if _, err := c.RoundTrip(t.Context(), callTool("quick")); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if r := <-slow; r.err != nil {
		t.Fatal(r.err)
	}
	for i := 1; i < len(got); i++ {
		var a, b int
		fmt.Sscan(got[i-1], &a)
		fmt.Sscan(got[i], &b)
		if a >= b {
			t.Fatalf("%d comes before %d", a, b)
		}
	}
	if last := got[len(got)-1]; last != fmt.Sprint(sent) || len(got) >= sent || len(got) < 1024 {
		t.Errorf("%d were delivered, the last is %s", len(got), last)
	}
}

// Notifications come one at a time, and never behind the return.
func TestNotificationsOfACall(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		c, _ := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			for i := range 20 {
				f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
				if i == 10 {
					f.reply(m, okResult)
				}
			}
		})
		defer c.Close()
		for range 50 {
			var running, returned atomic.Bool
			n := 0
			req := callTool("x")
			req.Notify = func(mcp.Notification) {
				if running.Swap(true) || returned.Load() {
					t.Error("concurrent, or behind the return")
				}
				n++
				running.Store(false)
			}
			if _, err := c.RoundTrip(t.Context(), req); err != nil || n != 11 {
				t.Fatalf("%d notifications, %v", n, err)
			}
			returned.Store(true)
		}
	})
}

func TestNotifier(t *testing.T) {
	for r, want := range map[mcp.Revision]string{r26: "server/discover x/y", r18: "initialize notifications/initialized notifications/roots/list_changed x/y"} {
		synctest.Test(t, func(t *testing.T) {
			c, f := connected(t, r, nil, transport.ClientOptions{}, nil)
			for _, method := range []string{mcp.NotificationRootsChanged, "x/y"} {
				if err := c.(mcp.Notifier).Notify(t.Context(), mcp.Notification{Method: method}); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if got := f.methods(); got != want {
				t.Errorf("sent %s", got)
			}
			c.Close()
		})
	}
}
