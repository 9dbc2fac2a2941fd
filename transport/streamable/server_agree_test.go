package streamable_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// slowSessions is a store that is slow to save.
type slowSessions struct{ sharedSessions }

func (s *slowSessions) Save(ctx context.Context, key string, record []byte, final bool, until time.Time) error {
	time.Sleep(20 * time.Millisecond)
	return s.sharedSessions.Save(ctx, key, record, final, until)
}

// twoReplicas serves the same test server at two replicas with one store. It returns the servers to
// change them.
func twoReplicas(t *testing.T, opts streamable.Options) (servers [2]*server.Server, urls [2]string) {
	opts.Sessions.Keys, opts.Sessions.Store = new(mcp.Keys), &sharedSessions{}
	for i := range servers {
		s := testServer(nil)
		server.Resource(s, "test://a", "Changes.", func(context.Context, struct{}) (string, error) { return "", nil })
		_, web := serve(t, s, opts)
		servers[i], urls[i] = s, web.URL+"/mcp"
	}
	return servers, urls
}

const subscribeBody = `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}}`

// If another replica has ended a session, the store must tell it.
func TestReplicasAgreeOnTheEnd(t *testing.T) {
	_, urls := twoReplicas(t, streamable.Options{})
	in := inSession(open(t, urls[0], mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", urls[1], pingBody, in...); got.status != 200 {
		t.Fatalf("the other replica: %d", got.status)
	}
	send(t, "DELETE", urls[0], "", in...)
	for _, url := range urls {
		if got := send(t, "POST", url, pingBody, in...); got.status != 404 {
			t.Errorf("after the end: %d", got.status)
		}
	}
}

// A session that is idle at one replica and in use at another must live at both.
func TestReplicasAgreeOnUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := streamable.Options{Sessions: streamable.SessionOptions{Idle: 10 * time.Minute, Keys: new(mcp.Keys), Store: &sharedSessions{}}}
		opened, used := streamable.Handler(testServer(nil), &opts), streamable.Handler(testServer(nil), &opts)
		defer func() { _, _ = opened.Shutdown(t.Context()), used.Shutdown(t.Context()) }()
		in := openAt(opened)
		for range 10 {
			if got := request(used, pingBody, in...); got.Code != 200 {
				t.Fatalf("the replica where it is used: %d %s", got.Code, got.Body)
			}
			time.Sleep(3 * time.Minute)
		}
		if got := request(opened, pingBody, in...); got.Code != 200 {
			t.Errorf("the replica where it was opened: %d %s", got.Code, got.Body)
		}
	})
}

// A client that has subscribed at one replica must get changes from another.
func TestReplicasAgreeOnSubscriptions(t *testing.T) {
	servers, urls := twoReplicas(t, streamable.Options{})
	in := inSession(open(t, urls[0], mcp.Revision20251125), mcp.Revision20251125)
	if got := send(t, "POST", urls[0], subscribeBody, in...); got.status != 200 {
		t.Fatalf("%d", got.status)
	}
	lines, _ := stream(t, urls[1], in...)
	until(t, lines, "id:")
	servers[1].Updated("test://a")
	for got := ""; !strings.Contains(got, "resources/updated"); {
		got = until(t, lines, "data:")
	}
}

// A session without requests and streams must end, even if it has a subscription.
func TestIdleSessionWithASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(nil)
		server.Resource(s, "test://a", "Changes.", func(context.Context, struct{}) (string, error) { return "", nil })
		endpoint := streamable.Handler(s, &streamable.Options{Sessions: streamable.SessionOptions{Idle: 10 * time.Minute}})
		defer func() { _ = endpoint.Shutdown(t.Context()) }()
		if got := request(endpoint, subscribeBody, openAt(endpoint)...); got.Code != 200 {
			t.Fatalf("%d %s", got.Code, got.Body)
		}
		time.Sleep(12 * time.Minute)
		if n := endpoint.Sessions(); n != 0 {
			t.Errorf("%d sessions remain", n)
		}
	})
}

// A request during the end of a session must not bring it back.
func TestEndOfASessionInUse(t *testing.T) {
	_, web := serve(t, testServer(nil), streamable.Options{Sessions: streamable.SessionOptions{Store: &slowSessions{}}})
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	var asking sync.WaitGroup
	for i := range 10 {
		asking.Go(func() {
			time.Sleep(time.Duration(i) * 5 * time.Millisecond)
			send(t, "POST", url, pingBody, in...)
		})
	}
	time.Sleep(10 * time.Millisecond)
	if got := send(t, "DELETE", url, "", in...); got.status != 204 {
		t.Errorf("DELETE: %d", got.status)
	}
	asking.Wait()
	if got := send(t, "POST", url, pingBody, in...); got.status != 404 {
		t.Errorf("afterwards: %d", got.status)
	}
}

// racingSessions is a store with compare-and-set. While late is set, the next change waits, after
// it has read the record, until late is closed.
type racingSessions struct {
	sharedSessions
	late    chan struct{}
	entered chan struct{}
}

// hold waits for late, once.
func (s *racingSessions) hold() {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	if late != nil {
		close(s.entered)
		<-late
	}
}

func (s *racingSessions) Save(ctx context.Context, key string, record []byte, final bool, until time.Time) error {
	s.hold()
	return s.sharedSessions.Save(ctx, key, record, final, until)
}

func (s *racingSessions) Update(ctx context.Context, key string, until time.Time, change func([]byte) ([]byte, bool, error)) error {
	for {
		read, _ := s.Load(ctx, key)
		next, final, err := change(read)
		if err != nil || next == nil {
			return err
		}
		s.hold()
		s.mu.Lock()
		isStale := string(s.records[key]) != string(read)
		s.mu.Unlock()
		if !isStale {
			return s.sharedSessions.Save(ctx, key, next, final, until)
		}
	}
}

// Two subscriptions of a client that reach two replicas at the same time are both kept.
func TestReplicasChangeASessionAtOnce(t *testing.T) {
	store := &racingSessions{entered: make(chan struct{})}
	var servers [2]*server.Server
	var urls [2]string
	opts := streamable.Options{Sessions: streamable.SessionOptions{Keys: new(mcp.Keys), Store: store}}
	for i := range servers {
		s := testServer(nil)
		for _, uri := range []string{"test://a", "test://b"} {
			server.Resource(s, uri, "Changes.", func(context.Context, struct{}) (string, error) { return "", nil })
		}
		_, web := serve(t, s, opts)
		servers[i], urls[i] = s, web.URL+"/mcp"
	}
	in := inSession(open(t, urls[0], mcp.Revision20251125), mcp.Revision20251125)
	subscribe := func(i int, uri string) {
		if got := send(t, "POST", urls[i], strings.Replace(subscribeBody, "test://a", uri, 1), in...); got.status != 200 || !strings.Contains(got.body, "result") {
			t.Errorf("%s at replica %d: %d %s", uri, i, got.status, got.body)
		}
	}
	late := make(chan struct{})
	store.mu.Lock()
	store.late = late
	store.mu.Unlock()
	var first sync.WaitGroup
	first.Go(func() { subscribe(0, "test://a") })
	<-store.entered
	subscribe(1, "test://b")
	close(late)
	first.Wait()
	lines, _ := stream(t, urls[1], in...)
	until(t, lines, "id:")
	for _, uri := range []string{"test://b", "test://a"} {
		servers[1].Updated(uri)
		for got := ""; !strings.Contains(got, uri); {
			got = until(t, lines, "data:")
		}
	}
}
