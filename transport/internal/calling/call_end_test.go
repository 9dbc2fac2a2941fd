package calling_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/transporttest"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// When its context ends, a call is cancelled at the server, once, with the cause.
func TestCancelledCall(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		synctest.Test(t, func(t *testing.T) {
			c, f := connected(t, r, nil, transport.ClientOptions{Tap: mcptest.ClientTap(t, mcptest.WithoutChecks("server:after-end", "server:legacy"))}, func(f *fake, m jsonrpc.Message) {
				if m.IsRequest() && !strings.Contains(string(m.Params), "hang") {
					f.reply(m, okResult)
				}
			})
			defer c.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			done := goCall(c, ctx, callTool("hang"))
			synctest.Wait()
			cancel(errors.New("no longer wanted"))
			if got := <-done; got.err == nil || got.err.Error() != "no longer wanted" {
				t.Errorf("got %v", got.err)
			}
			synctest.Wait()
			frames := f.received()
			if last := frames[len(frames)-1]; last != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"no longer wanted"}}` {
				t.Errorf("sent %s", last)
			}
			f.send(`{"jsonrpc":"2.0","id":2,%s}`, okResult) // which is ignored
			if _, err := c.RoundTrip(t.Context(), callTool("x")); err != nil {
				t.Error(err)
			}
			if _, err := c.RoundTrip(ctx, callTool("x")); err == nil || err.Error() != "no longer wanted" {
				t.Errorf("a context that has ended: %v", err)
			}
			if got := strings.Count(f.methods(), "notifications/cancelled"); got != 1 {
				t.Errorf("cancelled %d times", got)
			}
		})
	})
}

// A call is not cancelled at the server if its answer has arrived when its context ends.
func TestAnAnsweredCallIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := connected(t, r26, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			f.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, m.ID)
			f.reply(m, okResult)
		})
		defer c.Close()
		ended := 0
		for range 100 { // RoundTrip sees the answer or the end of the context first, as chance decides
			ctx, cancel := context.WithCancel(t.Context())
			req := callTool("x")
			req.Notify = func(mcp.Notification) {
				synctest.Wait() // the answer arrives
				cancel()
			}
			if _, err := c.RoundTrip(ctx, req); err != nil {
				ended++
			}
		}
		synctest.Wait()
		if got := strings.Count(f.methods(), "notifications/cancelled"); got != 0 || ended == 0 {
			t.Errorf("%d calls ended with their context, %d were cancelled at the server", ended, got)
		}
	})
}

// Many calls, some of which are cancelled while their answers are on their way: no answer goes to
// another call.
func TestCancellationRacesOfCalls(t *testing.T) {
	for _, r := range []mcp.Revision{r26, r25} {
		dialer := memory.Dialer(mcp.HandlerFunc(func(c context.Context, req *mcp.Request) (*mcp.Result, error) {
			switch req.Method {
			case mcp.MethodDiscover:
				return &mcp.Result{Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions()}}, nil
			case mcp.MethodCallTool:
			default:
				return nil, mcp.MethodNotFound(req.Method)
			}
			if req.ProgressToken != nil {
				_ = req.Peer.Notify(c, mcp.Notification{Method: mcp.NotificationProgress, Params: fmt.Appendf(nil, `{"progressToken":%s,"progress":1,"message":%s}`, req.ProgressToken, rawjson.Lookup(req.Params, "name"))})
			}
			return &mcp.Result{Raw: fmt.Appendf(nil, `{"content":[],"of":%s}`, rawjson.Lookup(req.Params, "name"))}, nil
		}), transport.ServerOptions{Logger: quiet, Tap: mcptest.ServerTap(t, mcptest.SentOnly())})
		c, err := dialer.Dial(t.Context(), &recorder{}, transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var answered, cancelled atomic.Int32
		for worker := range 16 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(worker), 1))
				for i := range 150 {
					name := fmt.Sprintf("%d/%d", worker, i)
					ctx, cancel := context.WithCancel(t.Context())
					if rnd.IntN(2) == 0 {
						after(time.Duration(rnd.IntN(200))*time.Microsecond, cancel)
					}
					req := callTool(name)
					if rnd.IntN(2) == 0 {
						req.Notify = func(n mcp.Notification) {
							if got := string(rawjson.Lookup(n.Params, "message")); got != fmt.Sprintf("%q", name) && !(got == "" && r < r25) {
								t.Errorf("%s got the progress of %s", name, got)
							}
						}
					}
					res, err := c.RoundTrip(ctx, req)
					switch {
					case err == nil && string(rawjson.Lookup(res.Raw, "of")) == fmt.Sprintf("%q", name):
						answered.Add(1)
					case errors.Is(err, context.Canceled):
						cancelled.Add(1)
					default:
						t.Errorf("%s got %+v, %v", name, res, err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if answered.Load() == 0 {
			t.Error("nothing was answered")
		}
	}
}

func TestAnswersToNothing(t *testing.T) {
	eachRevision(t, func(t *testing.T, r mcp.Revision) {
		in := &recorder{}
		c, _ := lossy(t, r, in, func(f *fake, m jsonrpc.Message) {
			f.send(`{"jsonrpc":"2.0","id":77,"result":{}}`)
			f.send(`{"jsonrpc":"2.0","id":"x","result":{}}`)
			f.send(`{"jsonrpc":"2.0","id":%s.0,"result":{"wrong":1}}`, m.ID)
			f.send(`{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}`)
			f.send(`{"jsonrpc":"2.0","id":77,"result":[]}`)
			f.send(`garbage`)
			f.send(`lose %s method`, m.ID)
			f.send(`lose method`)
			f.send("\x00\xff")
			f.send(`{"jsonrpc":"2.0","id":%s,"method":"roots/list","params":[]}`, m.ID) // a question of the same id, malformed
			f.send(`{"jsonrpc":"1.0","id":%s,"method":"roots/list"}`, m.ID)
			f.reply(m, `"result":{"resultType":"complete","right":1}`)
			f.reply(m, `"result":{"resultType":"complete","twice":1}`)
		})
		defer c.Close()
		for range 20 {
			res, err := c.RoundTrip(t.Context(), callTool("x"))
			if err != nil || !strings.Contains(string(res.Raw), "right") {
				t.Fatalf("%+v, %v", res, err)
			}
		}
		if len(in.down()) != 0 || in.noted() != "" {
			t.Errorf("down %v, notes %s", in.down(), in.noted())
		}
	})
}

// A lost connection fails all calls at once, and is told once; Close is not.
func TestConnectionLost(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		end  func(c mcp.Transport, f *fake, conn *transporttest.FailingConn)
		is   []error
		down int
	}{
		{"the server ends it", func(_ mcp.Transport, f *fake, _ *transporttest.FailingConn) { f.far.Close() }, []error{mcp.ErrConnection}, 1},
		{"it breaks", func(_ mcp.Transport, _ *fake, conn *transporttest.FailingConn) { conn.Fail <- broken }, []error{mcp.ErrConnection, broken}, 1},
		{"Close", func(c mcp.Transport, _ *fake, _ *transporttest.FailingConn) { c.Close() }, []error{mcp.ErrConnection, mcp.ErrClosed}, 0},
	} {
		for _, r := range []mcp.Revision{r26, r18} {
			t.Run(tt.name+"/"+string(r), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(t, func(f *fake, m jsonrpc.Message) {
						switch m.Method {
						case mcp.MethodDiscover:
							f.reply(m, discovered)
						case mcpwire.MethodInitialize:
							f.reply(m, initialized(r))
						}
					})
					conn := &transporttest.FailingConn{Conn: f.near, Fail: make(chan error, 1)}
					in := &recorder{}
					c, err := overconn.Connect(t.Context(), conn, in, "", transport.ClientOptions{Revision: r, Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
					if err != nil {
						t.Fatal(err)
					}
					var calls []<-chan called
					for range 10 {
						calls = append(calls, goCall(c, t.Context(), callTool("x")))
					}
					calls = append(calls, goCall(c, t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: []byte(`{"notifications":{"toolsListChanged":true}}`), Notify: func(mcp.Notification) {}}))
					synctest.Wait()
					tt.end(c, f, conn)
					for _, done := range calls {
						got := <-done
						for _, is := range tt.is {
							if !errors.Is(got.err, is) {
								t.Errorf("got %v", got.err)
							}
						}
					}
					_, err = c.RoundTrip(t.Context(), callTool("x"))
					for _, is := range tt.is {
						if !errors.Is(err, is) {
							t.Errorf("afterwards: %v", err)
						}
					}
					if err := c.(mcp.Notifier).Notify(t.Context(), mcp.Notification{Method: "x"}); !errors.Is(err, mcp.ErrConnection) {
						t.Errorf("Notify afterwards: %v", err)
					}
					c.Close()
					c.Close()
					if down := in.down(); len(down) != tt.down {
						t.Errorf("Down was told %v", down)
					}
					f.far.Close()
				})
			})
		}
	}
}
