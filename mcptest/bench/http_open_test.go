//go:build !race

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// inUse returns the memory that the process uses after a garbage collection.
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

// openEndpoint returns an endpoint that lets one client open many sessions and streams.
func openEndpoint() *streamable.Server {
	limits := transport.Limits{ClientSessions: 10_000, ClientStreams: 10_000}
	return streamable.Handler(echoServer(), &streamable.Options{ServerOptions: transport.ServerOptions{Quota: transport.NewQuota(limits)}})
}

// TestAllocationsIdleSession bounds the memory of a legacy session without a stream.
func TestAllocationsIdleSession(t *testing.T) {
	const most = 1024
	each := int64(math.MaxInt64)
	for range 3 { // the least, since other goroutines allocate now and then
		each = min(each, measureSessions(t))
	}
	if each > most {
		t.Errorf("an idle session takes %d bytes, more than %d", each, most)
	} else {
		t.Logf("an idle session takes %d bytes", each)
	}
}

// measureSessions returns the bytes that one of many idle sessions takes.
func measureSessions(t *testing.T) int64 {
	t.Helper()
	const n = 4000
	endpoint := openEndpoint()
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
	each := (inUse() - before) / n
	_ = endpoint.Shutdown(t.Context())
	return each
}

// streams are connections on each of which a response is open.
type streams struct {
	conns []net.Conn
	read  []*bufio.Reader
}

// openStreams sends each request on a connection of its own, and waits for the first event on each.
func openStreams(t testing.TB, address string, requests ...string) *streams {
	s := &streams{}
	for _, request := range requests {
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

// bare is an open response of net/http, and a way to write an event to all that are open: the least
// that does it.
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

// openRequests make a stream that stays open, in each era. The older one is of a session that is
// there already.
var openRequests = map[string]func(endpoint http.Handler) (next func() string){
	"subscriptions/listen": func(http.Handler) func() string {
		request := listenRequest("/")
		return func() string { return request }
	},
	"GET": func(endpoint http.Handler) func() string {
		return func() string {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(initializeBody))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			endpoint.ServeHTTP(w, r)
			return "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Protocol-Version: 2025-11-25\r\n" +
				"Mcp-Session-Id: " + w.Header().Get("Mcp-Session-Id") + "\r\n\r\n"
		}
	},
}

// measured names the variable under which a process of its own measures. A shared process would
// reuse memory of earlier measurements, above all stacks.
const measured = "DOWEL_BENCH_OPEN"

// TestAllocationsOpenStream bounds the memory of an open stream, relative to the memory of a
// minimal open response. It takes the round with the smallest ratio, because disturbances only
// increase it.
func TestAllocationsOpenStream(t *testing.T) {
	const rounds, most = 5, 1.15
	for name := range openRequests {
		t.Run(name, func(t *testing.T) {
			best := math.Inf(1)
			for round := 0; round < rounds && best > most; round++ {
				least, stream := openAlone(t, "bare", name), openAlone(t, "dowel", name)
				ratio := float64(stream) / float64(least)
				t.Logf("an open stream takes %d bytes, a bare response %d: %.3f times", stream, least, ratio)
				best = min(best, ratio)
			}
			if best > most {
				t.Errorf("an open stream takes %.3f times what a bare response takes", best)
			}
		})
	}
}

// openAlone is TestOpenStreamAlone in a process of its own.
func openAlone(t *testing.T, server, name string) int64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenStreamAlone$", "-test.v")
	cmd.Env = append(os.Environ(), measured+"="+server+" "+name)
	out, err := cmd.CombinedOutput()
	_, after, found := strings.Cut(string(out), measured+" ")
	line, _, _ := strings.Cut(after, "\n")
	each, malformed := strconv.ParseInt(line, 10, 64)
	if err != nil || !found || malformed != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return each
}

// TestOpenStreamAlone prints the memory of each of a thousand streams. It runs only if the
// environment selects a measurement.
func TestOpenStreamAlone(t *testing.T) {
	const n = 1000
	server, name, found := strings.Cut(os.Getenv(measured), " ")
	if !found {
		return // TestAllocationsOpenStream runs it
	}
	plain := &bare{open: map[http.ResponseWriter]*http.ResponseController{}, end: make(chan struct{})}
	endpoint := openEndpoint()
	next := openRequests[name](endpoint)
	var all []string
	for range n + 1 {
		all = append(all, next())
	}
	var h http.Handler = endpoint
	if server == "bare" {
		h = plain
	}
	web := httptest.NewServer(h)
	address := strings.TrimPrefix(web.URL, "http://")
	openStreams(t, address, all[:1]...).close()
	before := inUse()
	open := openStreams(t, address, all[1:]...)
	fmt.Println(measured, (inUse()-before)/n)
	open.close()
	close(plain.end)
	web.CloseClientConnections()
	web.Close()
	_ = endpoint.Shutdown(t.Context())
}

func BenchmarkFanOutHTTP1000(b *testing.B) {
	const n = 1000
	least := &bare{open: map[http.ResponseWriter]*http.ResponseController{}, end: make(chan struct{})}
	s := echoServer()
	endpoint := streamable.Handler(s, nil)
	one, two := httptest.NewServer(least), httptest.NewServer(endpoint)
	floors := openStreams(b, strings.TrimPrefix(one.URL, "http://"), slices.Repeat([]string{listenRequest("/")}, n)...)
	open := openStreams(b, strings.TrimPrefix(two.URL, "http://"), slices.Repeat([]string{listenRequest("/")}, n)...)
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
