package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestNotificationsOfNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		l := &fakeDialer{handler: handlers{}}
		c := dialFake(t, l, client.Options{
			Logger: quiet,
			OnLog:  func(p mcp.LoggingMessageParams) { got = append(got, "log "+string(p.Data)) },
			OnNotification: func(n mcp.Notification) {
				if n.Method == mcp.NotificationResourceUpdated {
					time.Sleep(time.Second) // delays only the handler
				}
				got = append(got, n.Method)
				if n.Method == "acme/panic" {
					panic("oh")
				}
			},
		})
		began := time.Now()
		for _, n := range []mcp.Notification{
			{Method: mcp.NotificationResourceUpdated, Params: []byte(`{"uri":"x://a"}`)},
			{Method: mcp.NotificationMessage, Params: []byte(`{"level":"info","data":1}`)},
			{Method: mcp.NotificationMessage, Params: []byte(`{"level":3}`)},
			{Method: "acme/panic"},
			{Method: "acme/other"},
		} {
			l.inbound().Notify(n)
		}
		if time.Since(began) != 0 {
			t.Error("Notify blocks")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := []string{mcp.NotificationResourceUpdated, "log 1", mcp.NotificationMessage, mcp.NotificationMessage, "acme/panic", "acme/other"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.Close()
		l.inbound().Notify(mcp.Notification{Method: "acme/late"})
		if len(got) != len(want) {
			t.Error("a notification is delivered after Close")
		}
	})
}

func TestTooManyNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := &fakeDialer{handler: handlers{}}
		dialFake(t, l, client.Options{Logger: quiet, OnNotification: func(mcp.Notification) {
			n++
			time.Sleep(time.Second)
		}})
		for range 5000 {
			l.inbound().Notify(mcp.Notification{Method: "acme/flood"})
		}
		time.Sleep(10000 * time.Second)
		synctest.Wait()
		if n < 1024 || n > 1025 {
			t.Errorf("%d were delivered, want the last 1024", n)
		}
	})
}

func TestNotifyTheServer(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		c := connect(t, handlers{}, client.Options{Wire: client.Wire{Revision: revision}, Answers: client.Answers{Roots: client.FixedRoots()}})
		err := c.Notify(t.Context(), mcp.Notification{Method: mcp.NotificationRootsChanged})
		if err != nil {
			t.Error(err)
		}
	})
	c := dialWire(t, handlers{}, client.Options{})
	err := c.Notify(t.Context(), mcp.Notification{Method: "acme/x"})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// Close ends a call that a function of the user makes with a context without an end, also if the
// server is in this process and its handler ignores its context.
func TestCloseDuringCallOfCallback(t *testing.T) {
	for _, callback := range []string{"OnChange", "OnNotification"} {
		release, started := make(chan struct{}), make(chan struct{}, 9)
		s := server.New("x", "1", &server.Options{ListInterval: -1})
		server.Tool(s, "block", "Waits.", func(context.Context, struct{}) (string, error) {
			started <- struct{}{}
			<-release
			return "", nil
		})
		var c *client.Client
		block := func() { _, _ = client.Call[string](context.Background(), c, "block", nil) }
		o := &client.Options{}
		if callback == "OnNotification" {
			o.OnNotification = func(mcp.Notification) { block() }
			o.Wire.Revision = mcp.Revision20251125
		}
		var err error
		if c, err = client.Dial(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
		if callback == "OnChange" {
			_, err = c.OnChange(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(client.Change, error) { block() })
		} else {
			_, err = c.Discover(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		server.Tool(s, "more", "Changes the list.", func(context.Context, struct{}) (string, error) { return "", nil })
		<-started
		polltest.Within(t, func() { c.Close() })
		close(release)
	}
}
