package streamable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// listens counts the subscriptions of its handler.
type listens struct {
	mcp.Handler
	mu    sync.Mutex
	now   int // active
	most  int // active at the same time, at most
	ever  int
	stack string // of the last subscription
}

func (c *listens) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		return c.Handler.ServeMCP(ctx, req)
	}
	c.mu.Lock()
	c.now, c.ever, c.stack = c.now+1, c.ever+1, string(debug.Stack())
	c.most = max(c.most, c.now)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}()
	return c.Handler.ServeMCP(ctx, req)
}

// settled waits until the handler was asked for ever subscriptions, of which now are active.
func (c *listens) settled(t *testing.T, ever, now int) {
	t.Helper()
	polltest.Until(t, fmt.Sprintf("%d subscriptions, %d of them open", ever, now), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ever == ever && c.now == now
	})
}

func (c *listens) onRequest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Contains(c.stack, "net/http.(*conn).serve")
}

// streamReader is a client that opens GET streams, one after the other. It resumes with the id of
// the last event.
type streamReader struct {
	t    *testing.T
	url  string
	in   []string
	mu   sync.Mutex
	last string
	seen map[string]bool // ids of messages
}

func newStreamReader(t *testing.T, url string) *streamReader {
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	return &streamReader{t: t, url: url, in: in, seen: map[string]bool{}}
}

// countMessages returns the number of messages that have arrived.
func (g *streamReader) countMessages() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

// open opens a stream and reads it until cut is called.
func (g *streamReader) open() (cut func()) {
	in := g.in
	if g.last != "" {
		in = append(in, "Last-Event-ID", g.last)
	}
	lines, end := stream(g.t, g.url, in...)
	read := make(chan struct{})
	go func() {
		defer close(read)
		id := ""
		for line := range lines {
			g.mu.Lock()
			if next, ok := strings.CutPrefix(line, "id: "); ok {
				id = next
			}
			switch {
			case strings.HasPrefix(line, "data: {"):
				if g.seen[id] {
					g.t.Errorf("%s came twice", id)
				}
				g.seen[id], g.last = true, id
			case line == "" && id != "":
				g.last = id
			}
			g.mu.Unlock()
		}
	}()
	return func() { end(); <-read }
}

func grower(s *server.Server) func() {
	n := 0
	return func() {
		n++
		server.Tool(s, fmt.Sprint("grown", n), "New.", func(context.Context, struct{}) (string, error) { return "", nil })
	}
}

// Connections begin and end while the lists change. No message may arrive twice, and nothing may
// remain.
func TestChangesWithoutEnd(t *testing.T) {
	s := testServer(nil)
	c := &listens{Handler: s}
	_, web := serve(t, c)
	grow := grower(s)
	grow()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Microsecond):
				s.ListChanged(server.KindTool)
			}
		}
	}()
	var clients sync.WaitGroup
	var all [3]*streamReader
	for i := range all {
		all[i] = newStreamReader(t, web.URL+"/mcp")
		cut := all[i].open()
		// A later connection is too short for more than the messages that it resumes, so the client
		// must have read one before.
		polltest.Until(t, fmt.Sprintf("a change for client %d", i), func() bool { return all[i].countMessages() > 0 })
		clients.Go(func() {
			cut()
			for range 9 {
				cut := all[i].open()
				time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond))))
				cut()
			}
		})
	}
	clients.Wait()
	close(end)
	<-ended
	for _, g := range all {
		defer g.open()()
	}
	polltest.Until(t, "each session has one subscription", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now == len(all)
	})
	c.mu.Lock()
	if c.most > 2*len(all) {
		t.Errorf("up to %d subscriptions at the same time for %d sessions", c.most, len(all))
	}
	c.mu.Unlock()
}

// A session has one subscription from its first GET on. It must run on the goroutine of an open
// GET, and end with the session.
func TestWhoListens(t *testing.T) {
	s := testServer(nil)
	c := &listens{Handler: s}
	_, web := serve(t, c)
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	c.settled(t, 0, 0)
	for round := range 3 {
		lines, cut := stream(t, url, in...)
		until(t, lines, "id:")
		c.settled(t, 1+2*round, 1)
		if !c.onRequest() {
			t.Error("an open GET does not listen itself")
		}
		second, cutSecond := stream(t, url, in...)
		until(t, second, "id:")
		cutSecond()
		c.settled(t, 1+2*round, 1)
		cut()
		c.settled(t, 2+2*round, 1)
		if c.onRequest() {
			t.Error("the request of a connection that has gone listens still")
		}
	}
	last, _ := stream(t, url, in...)
	until(t, last, "id:")
	c.settled(t, 7, 1)
	if got := send(t, "DELETE", url, "", in...); got.status != 204 {
		t.Errorf("DELETE: %d", got.status)
	}
	c.settled(t, 7, 0)
	for range last { // until the stream ends
	}
}

// If the first of two GETs ends, the standby connection must get the changes.
func TestSpareStaysWhenListenerGoes(t *testing.T) {
	s := testServer(nil)
	c := &listens{Handler: s}
	_, web := serve(t, c)
	url := web.URL + "/mcp"
	grow := grower(s)
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	first, cutFirst := stream(t, url, in...)
	until(t, first, "id:")
	second, cutSecond := stream(t, url, in...)
	until(t, second, "id:")
	cutFirst()
	grow() // during the handover
	until(t, second, "data: {")
	c.settled(t, 2, 1)
	grow()
	until(t, second, "data: {")
	third, cutThird := stream(t, url, in...)
	until(t, third, "id:")
	c.settled(t, 3, 1)
	cutSecond() // the GET without a subscription
	cutThird()
	c.settled(t, 4, 1)
}

// Sessions and the server may end during handovers. Nothing may wait for long.
func TestEndWhileShiftsChange(t *testing.T) {
	s := testServer(nil)
	c := &listens{Handler: s}
	endpoint, web := serve(t, c)
	url := web.URL + "/mcp"
	for range 5 {
		in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
		lines, cut := stream(t, url, in...)
		until(t, lines, "id:")
		cut()
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
		if got := send(t, "DELETE", url, "", in...); got.status != 204 {
			t.Errorf("DELETE: %d", got.status)
		}
	}
	polltest.Until(t, "the subscriptions end", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now == 0
	})
	var open5 []<-chan string
	for i := range 5 {
		in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
		lines, cut := stream(t, url, in...)
		until(t, lines, "id:")
		if i%2 == 0 {
			cut()
		} else {
			open5 = append(open5, lines)
		}
	}
	var err error
	polltest.Within(t, func() { err = endpoint.Shutdown(t.Context()) })
	if err != nil {
		t.Error(err)
	}
	for _, lines := range open5 {
		for range lines { // until the stream ends
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != 0 {
		t.Errorf("%d subscriptions are still open", c.now)
	}
}

// If a handler has no subscriptions, ends them by itself or never answers, a GET must still open
// within about a second, and nothing else may change.
func TestHandlersThatDoNotListen(t *testing.T) {
	for name, listen := range map[string]func(ctx context.Context, req *mcp.Request) error{
		"refuses": func(context.Context, *mcp.Request) error { return mcp.MethodNotFound(mcp.MethodListen) },
		"panics":  func(context.Context, *mcp.Request) error { panic("on purpose") },
		"is deaf": func(ctx context.Context, _ *mcp.Request) error { <-ctx.Done(); return ctx.Err() },
		"ends": func(ctx context.Context, req *mcp.Request) error {
			for range 2 { // a second end of the same subscription has no effect
				_ = req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":{}}`)})
			}
			return errors.New("enough")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(nil)
			var asked []*mcp.Request
			var mu sync.Mutex
			_, web := serve(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return s.ServeMCP(ctx, req)
				}
				mu.Lock()
				asked = append(asked, req)
				mu.Unlock()
				return nil, listen(ctx, req)
			}), streamable.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(slog.DiscardHandler)}})
			url := web.URL + "/mcp"
			in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
			for range 2 {
				lines, cut := stream(t, url, in...)
				until(t, lines, "id:")
				cut()
			}
			lines, _ := stream(t, url, in...)
			until(t, lines, "id:")
			for range 5 { // it must stay open
				if got := send(t, "POST", url, pingBody, in...); got.status != http.StatusOK {
					t.Errorf("ping: %d", got.status)
				}
			}
			select {
			case _, ok := <-lines:
				if !ok {
					t.Error("the stream has ended")
				}
			default:
			}
			if got := send(t, "DELETE", url, "", in...); got.status != http.StatusNoContent {
				t.Errorf("DELETE: %d", got.status)
			}
			for range lines { // until the stream ends
			}
			mu.Lock()
			defer mu.Unlock()
			for _, req := range asked[:len(asked)-1] {
				if name == "is deaf" {
					continue // they may be returning
				}
				if err := req.Peer.Change(t.Context(), mcp.Notification{Method: mcp.NotificationToolsChanged}); !errors.Is(err, mcp.ErrPeerGone) {
					t.Errorf("the peer of a request that was served: %v", err)
				}
			}
		})
	}
}
