package streamable_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// bubble is a session in a synctest bubble. Its GETs are direct calls of ServeHTTP, so client and
// server share a fake clock.
type bubble struct {
	endpoint http.Handler
	id       string
	grow     func()

	mu   sync.Mutex
	last string
	told int // messages
}

func newBubble(h mcp.Handler, grow func()) (*bubble, func()) {
	endpoint := streamable.Handler(h, nil)
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(initializeBody(mcp.Revision20251125, "")))
	r.Header.Set("Content-Type", "application/json")
	endpoint.ServeHTTP(w, r)
	return &bubble{endpoint: endpoint, id: w.Header().Get("Mcp-Session-Id"), grow: grow}, func() { _ = endpoint.Shutdown(context.Background()) }
}

// open begins a GET. cut ends it and counts its messages.
func (b *bubble) open() (cut func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, "GET", "/mcp", nil)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", b.id)
	b.mu.Lock()
	if b.last != "" {
		r.Header.Set("Last-Event-ID", b.last)
	}
	b.mu.Unlock()
	ended := make(chan struct{})
	go func() { defer close(ended); b.endpoint.ServeHTTP(w, r) }()
	return func() {
		cancel()
		<-ended
		b.mu.Lock()
		defer b.mu.Unlock()
		for line := range strings.Lines(w.Body.String()) {
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				b.last = strings.TrimSpace(id)
			}
			if strings.HasPrefix(line, "data: {") {
				b.told++
			}
		}
	}
}

// A change at any moment while a connection begins or ends, or between connections, must arrive
// exactly once, although the server holds changes back to coalesce them.
func TestChangeWhileConnectionsChange(t *testing.T) {
	const settled = 300 * time.Millisecond // a handover has ended by then, and changes have arrived
	cases := map[string]struct {
		told int
		do   func(b *bubble, at time.Duration)
	}{
		"connected": {1, func(b *bubble, at time.Duration) {
			cut := b.open()
			synctest.Wait() // nothing must arrive before this moment
			time.Sleep(at)
			b.grow()
			time.Sleep(settled)
			cut()
		}},
		"connected again": {1, func(b *bubble, at time.Duration) {
			b.open()()
			time.Sleep(settled)
			cut := b.open()
			time.Sleep(at)
			b.grow()
			time.Sleep(settled)
			cut()
		}},
		"cut when a change is held back": {2, func(b *bubble, at time.Duration) {
			cut := b.open()
			time.Sleep(settled)
			b.grow()
			time.Sleep(time.Millisecond)
			b.grow()
			time.Sleep(at / 10)
			cut()
		}},
		"cut, and another is there": {2, func(b *bubble, at time.Duration) {
			first := b.open()
			time.Sleep(settled)
			second := b.open()
			time.Sleep(settled)
			go first()
			time.Sleep(at)
			b.grow()
			time.Sleep(settled)
			b.grow()
			time.Sleep(settled)
			second()
		}},
		"gone": {1, func(b *bubble, at time.Duration) {
			cut := b.open()
			time.Sleep(settled)
			go cut()
			time.Sleep(at)
			b.grow()
			time.Sleep(settled)
		}},
		"gone, and a change is before it comes": {1, func(b *bubble, at time.Duration) {
			b.open()()
			time.Sleep(settled)
			b.grow()
			time.Sleep(at)
		}},
		"come and gone at once": {1, func(b *bubble, at time.Duration) {
			for range 3 {
				go b.grow()
				b.open()()
				time.Sleep(at / 3)
			}
			time.Sleep(settled)
			b.told = 0
			b.open()()
			b.told = 0
			b.grow()
		}},
	}
	for name, test := range cases {
		for at := time.Duration(0); at <= 240*time.Millisecond; at += 5 * time.Millisecond {
			t.Run(fmt.Sprint(name, " ", at), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := server.New("grows", "1", &server.Options{})
					grow := grower(s)
					grow()
					b, shutdown := newBubble(s, grow)
					defer shutdown()
					test.do(b, at)
					cut := b.open()
					time.Sleep(2 * settled)
					cut()
					if b.told != test.told {
						t.Errorf("told %d times, want %d", b.told, test.told)
					}
				})
			})
		}
	}
}

// A client of a handler that acknowledges late gets its stream before. It is told of the changes
// that the handler did not report meanwhile.
func TestLateAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 3 * time.Second
		s := server.New("grows", "1", &server.Options{})
		grow := grower(s)
		s.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					time.Sleep(late)
				}
				return next.ServeMCP(ctx, req)
			})
		})
		grow()
		b, shutdown := newBubble(s, grow)
		defer shutdown()
		cut := b.open()
		time.Sleep(late / 2)
		b.grow()
		time.Sleep(late)
		cut()
		if b.told != 1 {
			t.Errorf("told %d times, want 1", b.told)
		}
	})
}
