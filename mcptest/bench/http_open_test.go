//go:build !race

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// inUse is what the process has in use, once garbage is gone.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

const (
	initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"bench","version":"1"}}}`
	listenBody     = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true}}}`
)

// TestAllocationsIdleSession holds what a legacy session takes that has no stream.
func TestAllocationsIdleSession(t *testing.T) {
	const n, most = 4000, 1024
	endpoint := streamable.Handler(echoServer())
	open := func() {
		r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(initializeBody))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if endpoint.ServeHTTP(w, r); w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
	}
	open()
	before := inUse()
	for range n {
		open()
	}
	if each := (inUse() - before) / n; each > most {
		t.Errorf("an idle session takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("an idle session takes %d bytes", each)
	}
	_ = endpoint.Shutdown(t.Context())
}

// streams are connections on each of which a response is open.
type streams struct {
	conns []net.Conn
	read  []*bufio.Reader
}

// openStreams sends the same request on n connections, and waits for the first event on each.
func openStreams(t testing.TB, n int, address, request string) *streams {
	s := &streams{}
	for range n {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s.conns = append(s.conns, conn)
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range s.conns {
		in := bufio.NewReaderSize(conn, 64)
		s.read = append(s.read, in)
		s.event(t, in)
	}
	return s
}

// event reads lines up to one that holds data.
func (s *streams) event(t testing.TB, in *bufio.Reader) {
	for {
		line, prefix, err := in.ReadLine()
		data := bytes.HasPrefix(line, []byte("data:"))
		for prefix && err == nil {
			_, prefix, err = in.ReadLine()
		}
		if err != nil {
			t.Fatal(err)
		}
		if data {
			return
		}
	}
}

// events waits for an event on each stream.
func (s *streams) events(t testing.TB) {
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < len(s.read); i += 4 {
				s.event(t, s.read[i])
			}
		})
	}
	wg.Wait()
}

func (s *streams) close() {
	for _, conn := range s.conns {
		conn.Close()
	}
}

func listenRequest(path string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+
		"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s", path, len(listenBody), listenBody)
}

// bare is an open response of net/http, and a way to write an event to all that are open: the least that does it.
type bare struct {
	mu   sync.Mutex
	open map[http.ResponseWriter]*http.ResponseController
	end  chan struct{}
}

func (b *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: open\n\n")
	_ = control.Flush()
	b.mu.Lock()
	b.open[w] = control
	b.mu.Unlock()
	select {
	case <-b.end:
	case <-r.Context().Done():
	}
	b.mu.Lock()
	delete(b.open, w)
	b.mu.Unlock()
}

func (b *bare) send(event []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w, control := range b.open {
		_, _ = w.Write(event)
		_ = control.Flush()
	}
}

// TestAllocationsOpenStream holds what an open stream takes, beside the least that a response takes which is open. Stacks that
// earlier tests have left are used again, which takes as much off both and makes their ratio larger than it is: the round
// with the smallest is the nearest to the truth.
func TestAllocationsOpenStream(t *testing.T) {
	const rounds, most = 5, 1.15
	var ratios []float64
	for range rounds {
		least, stream := openStreamBytes(t)
		ratios = append(ratios, float64(stream)/float64(least))
		t.Logf("an open stream takes %d bytes, a bare response %d: %.2f times", stream, least, ratios[len(ratios)-1])
	}
	if ratio := slices.Min(ratios); ratio > most {
		t.Errorf("an open stream takes %.2f times what a bare response takes", ratio)
	}
}

func openStreamBytes(t *testing.T) (least, stream int64) {
	const n = 1000
	plain := &bare{open: map[http.ResponseWriter]*http.ResponseController{}, end: make(chan struct{})}
	endpoint := streamable.Handler(echoServer())
	var each [2]int64
	for i, h := range []http.Handler{plain, endpoint} {
		web := httptest.NewServer(h)
		address := strings.TrimPrefix(web.URL, "http://")
		openStreams(t, 1, address, listenRequest("/")).close()
		before := inUse()
		open := openStreams(t, n, address, listenRequest("/"))
		each[i] = (inUse() - before) / n
		open.close()
		if i == 0 {
			close(plain.end)
		}
		web.CloseClientConnections()
		web.Close()
	}
	_ = endpoint.Shutdown(t.Context())
	return each[0], each[1]
}

func BenchmarkFanOutHTTP1000(b *testing.B) {
	const n = 1000
	least := &bare{open: map[http.ResponseWriter]*http.ResponseController{}, end: make(chan struct{})}
	s := echoServer()
	endpoint := streamable.Handler(s)
	one, two := httptest.NewServer(least), httptest.NewServer(endpoint)
	floors := openStreams(b, n, strings.TrimPrefix(one.URL, "http://"), listenRequest("/"))
	open := openStreams(b, n, strings.TrimPrefix(two.URL, "http://"), listenRequest("/"))
	event := []byte("data: " + `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}` + "\n\n")
	time.Sleep(50 * time.Millisecond) // the last ones listen
	rounds(b, 5, serially(func() { s.ListChanged(server.KindTool); open.events(b) }), serially(func() { least.send(event); floors.events(b) }))
	close(least.end)
	floors.close()
	open.close()
	_ = endpoint.Shutdown(b.Context())
	one.Close()
	two.Close()
}
