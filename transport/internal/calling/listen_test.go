package calling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	"github.com/dowel-mcp/dowel/transport/overconn"
)

// notificationLog is a subscription with the notifications that it has received.
type notificationLog struct {
	mu   sync.Mutex
	got  []string
	done <-chan called
}

func (e *notificationLog) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.got, " ")
}

func listen(c mcp.Transport, ctx context.Context, filter string) *notificationLog {
	e := &notificationLog{}
	e.done = goCall(c, ctx, &mcp.Request{Method: mcp.MethodListen, Params: []byte(`{"notifications":` + filter + `}`), Notify: func(n mcp.Notification) {
		e.mu.Lock()
		defer e.mu.Unlock()
		what := strings.TrimPrefix(n.Method, "notifications/")
		if uri := rawjson.Lookup(n.Params, "uri"); uri != nil {
			what += string(uri)
		}
		if n.Method == mcp.NotificationAcknowledged {
			what = "ack" + string(rawjson.Lookup(n.Params, "notifications"))
		}
		e.got = append(e.got, what)
	}})
	synctest.Wait()
	return e
}

func tagged(f *fake, method, id, more string) {
	f.send(`{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}`, method, id, more)
}

func TestModernListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &recorder{}
		c, f := connected(t, r26, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			if m.Method == mcp.MethodListen {
				tagged(f, "subscriptions/acknowledged", m.ID.String(), `,"notifications":`+string(rawjson.Lookup(m.Params, "notifications")))
			}
		})
		defer c.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		one := listen(c, ctx, `{"toolsListChanged":true}`)
		two := listen(c, t.Context(), `{"resourceSubscriptions":["x://a"]}`)
		three := listen(c, t.Context(), `{}`)
		tagged(f, "tools/list_changed", "2", ``)
		tagged(f, "resources/updated", "3", `,"uri":"x://a"`)
		tagged(f, "tools/list_changed", "77", ``)                               // belongs to no subscription
		tagged(f, "tools/list_changed", "null", `,"a":1`)                       // belongs to no subscription
		f.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`) // theirs who have asked for it
		synctest.Wait()
		if got := one.text(); got != `ack{"toolsListChanged":true} tools/list_changed tools/list_changed` {
			t.Errorf("one heard %s", got)
		}
		if got := two.text(); got != `ack{"resourceSubscriptions":["x://a"]} resources/updated"x://a"` {
			t.Errorf("two heard %s", got)
		}
		if got := strings.Count(in.noted(), "tools/list_changed"); got != 2 {
			t.Errorf("nobody's: %s", in.noted())
		}
		// the client ends one
		cancel(errors.New("seen enough"))
		if got := <-one.done; got.err == nil || got.err.Error() != "seen enough" {
			t.Errorf("one ended with %v", got.err)
		}
		synctest.Wait()
		frames := f.received()
		if last := frames[len(frames)-1]; last != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"seen enough"}}` {
			t.Errorf("sent %s", last)
		}
		// the server ends two by a result and a cancellation, three by a cancellation alone
		tagged(f, "resources/updated", "3", `,"uri":"x://a"`)
		f.send(`{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":3}}}`)
		f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
		for i, e := range []*notificationLog{two, three} {
			if got := <-e.done; got.err != nil || got.res.Type != mcp.ResultComplete {
				t.Errorf("%d ended with %+v, %v", i+2, got.res, got.err)
			}
		}
		if got := two.text(); !strings.HasSuffix(got, `resources/updated"x://a" resources/updated"x://a"`) {
			t.Errorf("two heard %s", got)
		}
		if got := in.noted(); strings.Contains(got, "cancelled") {
			t.Errorf("nobody's: %s", got)
		}
	})
}

// The server may cancel only subscriptions.
func TestServerCancelsACall(t *testing.T) {
	for _, r := range []mcp.Revision{r26, r25} {
		c, _ := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, m.ID)
			f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`)
			f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			f.reply(m, okResult)
		})
		if _, err := c.RoundTrip(t.Context(), callTool("x")); err != nil {
			t.Error(err)
		}
		c.Close()
	}
}

// asksFor tells which resources are subscribed to and unsubscribed from, in order.
func asksFor(f *fake) string {
	var got []string
	for _, frame := range f.received() {
		m, _ := jsonrpc.Parse([]byte(frame), nil)
		if rest, ok := strings.CutPrefix(m.Method, "resources/"); ok {
			got = append(got, rest+string(rawjson.Lookup(m.Params, "uri")))
		}
	}
	return strings.Join(got, " ")
}

func TestLegacyListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &recorder{}
		c, f := connected(t, r25, in, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			uri := string(rawjson.Lookup(m.Params, "uri"))
			if m.Method == mcpwire.MethodSubscribe && uri == `"x://no"` {
				f.reply(m, `"error":{"code":-32002,"message":"no"}`)
				return
			}
			f.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%s}}`, uri) // before the ack
			f.reply(m, `"result":{}`)
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		one := listen(c, ctx, `{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["x://a","x://no"]}`)
		two := listen(c, t.Context(), `{"resourcesListChanged":true,"resourceSubscriptions":["x://a","x://b"]}`)
		three := listen(c, t.Context(), `{}`)
		if got := asksFor(f); got != `subscribe"x://a" subscribe"x://no" subscribe"x://b"` {
			t.Errorf("asked for %s", got)
		}
		for _, n := range []string{"tools/list_changed", "prompts/list_changed", "resources/list_changed"} {
			f.send(`{"jsonrpc":"2.0","method":"notifications/%s"}`, n)
		}
		for _, uri := range []string{"x://a", "x://a/part", "x://b", "x://c"} {
			f.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%s"}}`, uri)
		}
		synctest.Wait()
		if got := one.text(); got != `ack{"toolsListChanged":true,"resourceSubscriptions":["x://a"]} resources/updated"x://a" tools/list_changed resources/updated"x://a" resources/updated"x://a/part"` {
			t.Errorf("one heard %s", got)
		}
		if got := two.text(); got != `ack{"resourcesListChanged":true,"resourceSubscriptions":["x://a","x://b"]} resources/updated"x://b" resources/list_changed resources/updated"x://a" resources/updated"x://a/part" resources/updated"x://b"` {
			t.Errorf("two heard %s", got)
		}
		if got := three.text(); got != `ack{}` {
			t.Errorf("three heard %s", got)
		}
		if got := in.noted(); got != `notifications/prompts/list_changed notifications/resources/updated{"uri":"x://c"}` {
			t.Errorf("nobody's: %s", got)
		}
		// a resource without other listeners is unsubscribed
		cancel(errors.New("seen enough"))
		if got := <-one.done; got.err == nil || got.err.Error() != "seen enough" {
			t.Errorf("one ended with %v", got.err)
		}
		if got := asksFor(f); strings.Contains(got, "unsubscribe") {
			t.Errorf("asked for %s", got)
		}
		f.far.Close()
		for i, e := range []*notificationLog{two, three} {
			if got := <-e.done; !errors.Is(got.err, mcp.ErrConnection) {
				t.Errorf("%d ended with %v", i+2, got.err)
			}
		}
		c.Close()
	})
}

func TestLegacyListenUnsubscribes(t *testing.T) {
	for name, answer := range map[string]string{"answered": `"result":{}`, "refused": `"error":{"code":1,"message":"m"}`, "silence": ``} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := connected(t, r18, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
					if m.Method == mcpwire.MethodSubscribe {
						f.reply(m, `"result":{}`)
					} else if m.IsRequest() && answer != "" {
						f.reply(m, answer)
					}
				})
				defer c.Close()
				ctx, cancel := context.WithCancel(t.Context())
				e := listen(c, ctx, `{"resourceSubscriptions":["x://a","x://b"]}`)
				begin := time.Now()
				cancel()
				if got := <-e.done; !errors.Is(got.err, context.Canceled) || time.Since(begin) > 5*time.Second {
					t.Errorf("ended after %v with %v", time.Since(begin), got.err)
				}
				if got := asksFor(f); !strings.HasPrefix(got, `subscribe"x://a" subscribe"x://b" unsubscribe"x://a"`) {
					t.Errorf("asked for %s", got)
				}
			})
		})
	}
}

// A server that offers no changes gets no subscriptions.
func TestLegacyListenToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, func(f *fake, m jsonrpc.Message) {
			if m.Method == mcpwire.MethodInitialize {
				f.reply(m, `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`)
			}
		})
		c, err := overconn.Connect(t.Context(), f.near, &recorder{}, "", transport.ClientOptions{Revision: r18, Logger: quiet, Tap: mcptest.ClientTap(t, mcptest.SentOnly())})
		if err != nil {
			t.Fatal(err)
		}
		e := listen(c, t.Context(), `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["x://a"]}`)
		if got := e.text(); got != `ack{}` {
			t.Errorf("heard %s", got)
		}
		c.Close()
		if got := <-e.done; !errors.Is(got.err, mcp.ErrClosed) {
			t.Errorf("ended with %v", got.err)
		}
		if got := f.methods(); got != "initialize notifications/initialized" {
			t.Errorf("sent %s", got)
		}
	})
}

// A subscription needs no Notify function.
func TestListenWithoutListener(t *testing.T) {
	for _, r := range []mcp.Revision{r26, r18} {
		c, f := connected(t, r, nil, transport.ClientOptions{}, func(f *fake, m jsonrpc.Message) {
			for range 10 {
				f.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
			}
			if m.Method != mcp.MethodListen {
				f.reply(m, `"result":{}`)
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		for range 50 {
			f.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}`)
		}
		_, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodListen, Params: []byte(`{"notifications":{"resourceSubscriptions":["x://a"]}}`)})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", r, err)
		}
		cancel()
		c.Close()
	}
}

func TestListenWithoutFilter(t *testing.T) {
	c, _ := connected(t, r18, nil, transport.ClientOptions{}, nil)
	defer c.Close()
	_, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodListen, Params: []byte(`{"notifications":5}`)})
	var e *mcp.Error
	if !errors.As(err, &e) || e.Code != -32602 {
		t.Errorf("got %v", err)
	}
}

// The result of a legacy handshake is returned as the result of server/discover.
func TestLegacyDiscover(t *testing.T) {
	for r := range map[mcp.Revision]bool{r25: true, r24: true} {
		c, f := connected(t, r, nil, transport.ClientOptions{}, nil)
		for range 2 {
			res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodDiscover})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"supportedVersions":["%s"],"capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true},"prompts":{}},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}`, r)
			if !transporttest.MatchJSON(want, res.Raw) || res.Revision != r || res.Type != mcp.ResultComplete {
				t.Errorf("got %s", res.Raw)
			}
		}
		c.Close()
		<-f.ended
		if got := f.methods(); got != "initialize notifications/initialized" {
			t.Errorf("sent %s", got)
		}
	}
}

// The first server/discover is what the probe was answered; the next one goes over the wire.
func TestModernDiscover(t *testing.T) {
	c, f := connected(t, r26, nil, transport.ClientOptions{}, nil)
	for range 3 {
		if res, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodDiscover}); err != nil || !strings.Contains(string(res.Raw), "supportedVersions") {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	c.Close()
	<-f.ended
	if got := f.methods(); got != "server/discover server/discover server/discover" {
		t.Errorf("sent %s", got)
	}
}
