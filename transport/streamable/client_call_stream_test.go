package streamable_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
)

// notificationEvent is an event with a notification.
func notificationEvent(method, params string) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":%s}\n\n", method, params)
}

// Notifications of other kinds than progress and log messages may come with the answer to a call,
// in both eras. They reach the handlers of notifications that belong to no call: a change that is
// watched its watch, all others OnNotification.
func TestNotificationsBesideProgress(t *testing.T) {
	for _, revision := range bothEras {
		t.Run(string(revision), func(t *testing.T) {
			b := &fakeServer{session: "s"}
			b.get = func(w http.ResponseWriter, r *http.Request) { // silent beside the calls
				beginStream(w, ": open\n\n")
				b.silent(r)
			}
			b.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
				switch m.Method {
				case mcp.MethodListen:
					beginStream(w, notificationEvent(mcp.NotificationAcknowledged,
						`{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(m.ID)+`},"notifications":{"toolsListChanged":true}}`))
					b.silent(r)
				case mcp.MethodCallTool:
					beginStream(w, notificationEvent("notifications/acme/step", `{"n":1}`)+
						notificationEvent(mcp.NotificationProgress, `{"progressToken":`+string(m.ID)+`,"progress":1}`)+
						notificationEvent(mcp.NotificationToolsChanged, `{}`)+notificationEvent(mcp.NotificationResourceUpdated, `{"uri":"x://a"}`)+
						"data: "+proper(m)+"\n\n")
				default:
					return false
				}
				return true
			}
			var mu sync.Mutex
			var got []string
			c := mustDialFake(t, b.start(t), revision, client.Options{OnNotification: func(n mcp.Notification) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, n.Method+string(n.Params))
			}})
			changes := make(chan client.Change, 10)
			if _, err := c.OnChange(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change client.Change, err error) {
				if err == nil {
					changes <- change
				}
			}); err != nil {
				t.Fatal(err)
			}
			progress := 0
			if text, err := callFake(t, c, client.CallOptions{OnProgress: func(mcp.ProgressParams) { progress++ }}); err != nil || text != "fine" || progress != 1 {
				t.Errorf("%q, %d times progress, %v", text, progress, err)
			}
			polltest.Within(t, func() {
				if change := <-changes; change.Method != mcp.NotificationToolsChanged {
					t.Errorf("the watch got %+v", change)
				}
			})
			polltest.Until(t, "both others", func() bool { mu.Lock(); defer mu.Unlock(); return len(got) >= 2 })
			mu.Lock()
			defer mu.Unlock()
			if want := `notifications/acme/step{"n":1} notifications/resources/updated{"uri":"x://a"}`; strings.Join(got, " ") != want {
				t.Errorf("OnNotification got %q, want %s", got, want)
			}
		})
	}
}

// Notifications that arrive on two streams at the same time each reach the handler that they belong
// to.
func TestNotificationsOnTwoStreams(t *testing.T) {
	const all = 300 // fewer than a queue holds
	long := make(chan posted, 1)
	sent, release := make(chan struct{}), make(chan struct{})
	b := &fakeServer{session: "s"}
	b.get = func(w http.ResponseWriter, r *http.Request) {
		beginStream(w, ": open\n\n")
		select {
		case m := <-long:
			for i := range all {
				beginStream(w, notificationEvent(mcp.NotificationProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, m.ID, i+1)))
			}
			close(sent)
		case <-r.Context().Done():
		}
		b.silent(r)
	}
	b.post = onCall(func(w http.ResponseWriter, _ *http.Request, m posted) {
		if strings.Contains(string(m.Params), "long") {
			long <- m
			<-release
			b.answer(w, m)
			return
		}
		for i := range all {
			beginStream(w, notificationEvent(mcp.NotificationResourceUpdated, fmt.Sprintf(`{"uri":"x://%d"}`, i)))
		}
		beginStream(w, "data: "+proper(m)+"\n\n")
	})
	var updates, progress atomic.Int32
	c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{OnNotification: func(n mcp.Notification) {
		if n.Method == mcp.NotificationResourceUpdated {
			updates.Add(1)
		} else {
			t.Errorf("OnNotification got %s", n.Method)
		}
	}})
	var calls sync.WaitGroup
	call := func(kind string, o client.CallOptions) {
		calls.Go(func() {
			if _, err := client.Call[string](t.Context(), c, "t", map[string]string{"kind": kind}, o); err != nil {
				t.Error(err)
			}
		})
	}
	call("long", client.CallOptions{OnProgress: func(mcp.ProgressParams) { progress.Add(1) }})
	call("short", client.CallOptions{})
	polltest.Within(t, func() { <-sent })
	polltest.Until(t, "all notifications", func() bool { return updates.Load() >= all && progress.Load() >= all })
	close(release)
	calls.Wait()
	if updates.Load() != all || progress.Load() != all {
		t.Errorf("%d updates and %d times progress, want %d each", updates.Load(), progress.Load(), all)
	}
}
