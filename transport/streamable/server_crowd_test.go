package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/streamable/internal/memstore"
)

// Sessions that are open at the same time, in every way in which they can be used and dropped, must
// leave no goroutine and no memory after the event store has forgotten their streams.
func TestManySessions(t *testing.T) {
	const many, bytesEach, maxAge = 2000, 100, time.Second
	events := memstore.NewEvents(memstore.EventLimits{MaxAge: maxAge})
	endpoint := streamable.Handler(testServer(nil), &streamable.Options{Sessions: streamable.SessionOptions{Idle: time.Hour, Life: time.Hour, Events: events}})
	web := httptest.NewServer(endpoint) // without the wire check, which remembers sessions
	t.Cleanup(func() {
		web.CloseClientConnections()
		_ = endpoint.Shutdown(context.Background())
		web.Close()
	})
	c := &crowd{t, web.URL + "/mcp", &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	heap := func() int {
		c.live(1) // its events make the store evict old ones
		c.client.CloseIdleConnections()
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	liveAndEnd := func(sessions int) {
		c.live(sessions)
		c.client.CloseIdleConnections()
		polltest.Until(t, "the sessions end", func() bool {
			endpoint.EndIdleSessions()
			return endpoint.Sessions() == 0
		})
	}
	liveAndEnd(many / 20)
	time.Sleep(maxAge) // the events of these sessions do not count as memory that is freed later
	before, goroutines := heap(), runtime.NumGoroutine()
	liveAndEnd(many)
	polltest.Until(t, fmt.Sprintf("%d sessions that are over hold at most %d bytes", many, many*bytesEach), func() bool {
		grown := heap() - before
		t.Logf("%d sessions that are over hold %d bytes", many, grown)
		return grown <= many*bytesEach
	})
	polltest.Until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
}

// crowd is a number of clients with a session each.
type crowd struct {
	t      *testing.T
	url    string
	client *http.Client
}

func (c *crowd) live(sessions int) {
	ids := make([]string, sessions)
	c.each(sessions, func(i int) error {
		header, err := c.do("POST", initializeBody(mcp.Revision20251125, ""))
		ids[i] = header.Get("Mcp-Session-Id")
		return err
	})
	c.each(sessions, func(i int) error { return c.life(i, ids[i]) })
}

// each calls f for each session, 32 at a time.
func (c *crowd) each(sessions int, do func(i int) error) {
	todo := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range todo {
				if err := do(i); err != nil {
					c.t.Error(err)
				}
			}
		})
	}
	for i := range sessions {
		todo <- i
	}
	close(todo)
	wg.Wait()
}

// life runs one session. One in four drops a stream. Half of them are ended, the others abandoned.
func (c *crowd) life(i int, id string) error {
	in := inSession(id, mcp.Revision20251125)
	steps := [][2]string{{"POST", listOf("tools/list")}, {"POST", pingBody}}
	if i%4 == 0 {
		steps = append(steps, [2]string{"GET", ""})
	}
	if i%2 == 0 {
		steps = append(steps, [2]string{"DELETE", ""})
	}
	for _, step := range steps {
		if _, err := c.do(step[0], step[1], in...); err != nil {
			return err
		}
	}
	return nil
}

func (c *crowd) do(method, body string, fields ...string) (http.Header, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %d", method, body, resp.StatusCode)
	}
	return resp.Header, nil
}
