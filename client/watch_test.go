package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// feed is a server with subscriptions: each acknowledges grant, if it is not empty, and then sends
// the notifications from the channel changes until that is closed.
type feed struct {
	grant   string
	changes chan mcp.Notification // a change without a method ends the subscription
	refuse  error
	opened  int
}

func (f *feed) listen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	f.opened++
	if f.refuse != nil {
		return nil, f.refuse
	}
	if f.grant != "" {
		_ = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":` + f.grant + `}`)})
	}
	for {
		select {
		case change := <-f.changes:
			if change.Method == "" {
				return raw(`{}`), nil
			}
			_ = req.Peer.Change(ctx, change)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

var toolsChanged = mcp.Notification{Method: mcp.NotificationToolsChanged}

func updated(uri string) mcp.Notification {
	return mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: []byte(fmt.Sprintf(`{"uri":%q}`, uri))}
}

func watching(t *testing.T, f *feed, l *fakeDialer) (*client.Client, *client.Watch) {
	t.Helper()
	if f.changes == nil {
		f.changes = make(chan mcp.Notification)
	}
	if f.grant == "" {
		f.grant = `{"toolsListChanged":true}`
	}
	l.handler = handlers{mcp.MethodListen: f.listen, mcp.MethodCallTool: returns(done)}
	c := dialFake(t, l, client.Options{})
	w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"x://a"}})
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

func TestWatchDeliversChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		_, w := watching(t, f, &fakeDialer{})
		if got := w.Acknowledged(); !got.ToolsListChanged || got.ResourceSubscriptions != nil {
			t.Errorf("acknowledged %+v", got)
		}
		go func() {
			f.changes <- toolsChanged
			time.Sleep(time.Second)
			f.changes <- updated("x://a/part")
		}()
		var got []string
		for change, err := range w.Changes() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, change.Method+" "+change.URI)
			if len(got) == 2 {
				break // ends the watch
			}
		}
		if got[0] != "notifications/tools/list_changed " || got[1] != "notifications/resources/updated x://a/part" {
			t.Errorf("got %q", got)
		}
	})
}

// OnChange calls its function in both eras, and gives it the error that ends the watch.
func TestOnChange(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		s := server.New("s", "1", nil)
		server.Tool(s, "early", "", func(context.Context, struct{}) (string, error) { return "", nil })
		server.Resource(s, "x://a", "", func(context.Context, struct{}) (string, error) { return "", nil })
		c, err := client.Dial(t.Context(), s, &client.Options{Wire: client.Wire{Revision: revision}})
		if err != nil {
			t.Fatal(err)
		}
		changes := make(chan client.Change, 8)
		w, err := c.OnChange(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"x://a"}}, func(change client.Change, err error) {
			if err != nil {
				t.Error(err)
			}
			changes <- change
		})
		if err != nil {
			t.Fatal(err)
		}
		server.Tool(s, "late", "", func(context.Context, struct{}) (string, error) { return "", nil })
		if got := <-changes; got.Method != mcp.NotificationToolsChanged {
			t.Errorf("%+v", got)
		}
		s.Updated("x://a")
		if got := <-changes; got.Method != mcp.NotificationResourceUpdated || got.URI != "x://a" {
			t.Errorf("%+v", got)
		}
		w.Close()
		c.Close()
		if _, err := c.OnChange(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(client.Change, error) {}); !errors.Is(err, mcp.ErrClosed) {
			t.Error(err)
		}
	})
	f := &feed{changes: make(chan mcp.Notification), grant: `{"toolsListChanged":true}`}
	l := &fakeDialer{handler: handlers{mcp.MethodListen: f.listen}}
	c := dialFake(t, l, client.Options{Restart: client.Restart{Max: 0}})
	ended := make(chan error, 1)
	_, err := c.OnChange(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(_ client.Change, err error) { ended <- err })
	if err != nil {
		t.Fatal(err)
	}
	f.refuse = mcp.MethodNotFound(mcp.MethodListen)
	f.changes <- mcp.Notification{}
	if err := <-ended; err == nil {
		t.Error("the watch ended without an error")
	}
}

func TestWatchThatIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		feed   feed
		filter mcp.SubscriptionFilter
		want   string
	}{
		{"nothing asked for", feed{}, mcp.SubscriptionFilter{}, "asks for no changes"},
		{"nothing granted", feed{grant: `{"promptsListChanged":true,"resourceSubscriptions":["x://b"]}`},
			mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"x://a"}}, "offers none"},
		{"no such method", feed{refuse: mcp.MethodNotFound(mcp.MethodListen)}, mcp.SubscriptionFilter{ToolsListChanged: true}, "method not found"},
		{"unreadable", feed{grant: `3`}, mcp.SubscriptionFilter{ToolsListChanged: true}, "cannot be read"},
		{"never acknowledged", feed{}, mcp.SubscriptionFilter{ToolsListChanged: true}, "did not acknowledge"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dialWire(t, handlers{mcp.MethodListen: test.feed.listen}, client.Options{})
				_, err := c.Watch(t.Context(), test.filter)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			})
		})
	}
	t.Run("ended before it began", func(t *testing.T) {
		c := dialWire(t, handlers{mcp.MethodListen: returns(`{}`)}, client.Options{})
		if _, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}); err == nil {
			t.Error("no error")
		}
	})
}

func TestWatchListensAgain(t *testing.T) {
	for _, how := range []string{"lost", "ended"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, l := &feed{}, &fakeDialer{}
				c, w := watching(t, f, l)
				go func() {
					f.changes <- toolsChanged
					synctest.Wait()
					if how == "lost" {
						l.loseConnection("gone")
						synctest.Wait()
					} else {
						f.changes <- mcp.Notification{}
					}
					f.changes <- toolsChanged
				}()
				var got []client.Change
				for change, err := range w.Changes() {
					if err != nil {
						t.Fatal(err)
					}
					if got = append(got, change); len(got) == 3 {
						break
					}
				}
				if got[0].Gap || !got[1].Gap || got[1].Method != "" || got[2].Gap || f.opened != 2 {
					t.Errorf("got %+v after %d subscriptions", got, f.opened)
				}
				if got := c.State().Status; got != client.Ready {
					t.Errorf("the state is %v", got)
				}
			})
		})
	}
}

func TestWatchBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		_, w := watching(t, f, &fakeDialer{})
		began := time.Now()
		go func() {
			for range 6 {
				f.changes <- mcp.Notification{}
			}
			f.changes <- toolsChanged
		}()
		for change := range w.Changes() {
			if !change.Gap {
				break
			}
		}
		// 250, 500, 1000, 2000, 4000, 8000 ms, each shortened by up to half.
		if took := time.Since(began); took < 7875*time.Millisecond || took > 15750*time.Millisecond {
			t.Errorf("listening 6 times anew took %v", took)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	end := func(t *testing.T, w *client.Watch) error {
		var last error
		for _, err := range w.Changes() {
			last = err
		}
		return last
	}
	t.Run("by its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{changes: make(chan mcp.Notification), grant: `{"toolsListChanged":true}`}
			c := dialWire(t, handlers{mcp.MethodListen: f.listen}, client.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := end(t, w); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("by Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, w := watching(t, &feed{}, &fakeDialer{})
			w.Close()
			if err := end(t, w); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("by the client's Close", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, w := watching(t, &feed{}, &fakeDialer{})
			go c.Close()
			if err := end(t, w); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("by a refusal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{}
			_, w := watching(t, f, &fakeDialer{})
			f.changes <- toolsChanged
			f.refuse = mcp.MethodNotFound(mcp.MethodListen)
			f.changes <- mcp.Notification{}
			var answered *mcp.Error
			if err := end(t, w); !errors.As(err, &answered) {
				t.Errorf("got %v", err)
			}
		})
	})
	t.Run("by errors that do not end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &feed{}
			_, w := watching(t, f, &fakeDialer{})
			f.refuse = mcp.Errorf(-32603, "internal error")
			f.changes <- mcp.Notification{}
			var answered *mcp.Error
			if err := end(t, w); !errors.As(err, &answered) || f.opened < 3 || f.opened > 10 {
				t.Errorf("got %v after %d subscriptions", err, f.opened)
			}
		})
	})
	t.Run("when the client gives up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := &fakeDialer{fails: func(n int) error {
				if n > 0 {
					return errors.New("no such file")
				}
				return nil
			}}
			_, w := watching(t, &feed{}, l)
			l.loseConnection("gone")
			mustBe(t, end(t, w), mcp.ErrConnection)
		})
	})
}

func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		_, w := watching(t, f, &fakeDialer{})
		for i := range 100 {
			f.changes <- toolsChanged
			f.changes <- updated(fmt.Sprint("x://", i%3))
		}
		f.changes <- mcp.Notification{Method: "notifications/acme", Params: []byte(`{"n":1}`)}
		f.changes <- mcp.Notification{Method: "notifications/acme", Params: []byte(`{"n":1}`)}
		synctest.Wait()
		w.Close()
		n := 0
		for range w.Changes() {
			n++
		}
		if n != 6 {
			t.Errorf("%d changes, want 1 of tools, 3 of resources, 2 of an extension", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &feed{}
		_, w := watching(t, f, &fakeDialer{})
		for i := range 1025 {
			f.changes <- updated(fmt.Sprint("x://", i))
		}
		synctest.Wait()
		w.Close()
		for change := range w.Changes() {
			if !change.Gap {
				t.Errorf("got %+v, want a gap in place of too many changes", change)
			}
		}
	})
}
