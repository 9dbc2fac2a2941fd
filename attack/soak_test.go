//go:build linux

package attack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/programtest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// The soak runs for DOWEL_SOAK, with the random numbers of DOWEL_SOAK_SEED. It writes its figures
// to the file DOWEL_SOAK_REPORT, if that is set.
const (
	soakTime     = 10 * time.Second
	soakWorkers  = 6
	moreFiles    = 12
	moreRoutines = 24
	moreHeap     = 12 << 20
	moreMemory   = 96 << 20 // the system's view of memory: the runtime returns it late
)

// figures are the sizes of a process.
type figures struct {
	Goroutines int
	HeapBytes  int64
	files      int
	rss        int64
}

func (f figures) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %.1f MiB live heap, %.1f MiB resident", f.Goroutines, f.files, float64(f.HeapBytes)/(1<<20), float64(f.rss)/(1<<20))
}

// measure returns the sizes of the victim's dowel.
func (v *victim) measure() (f figures) {
	v.t.Helper()
	code, text, _ := v.exchange("GET", "/status.json", "", "Authorization", v.bearer())
	if err := json.Unmarshal([]byte(text), &f); err != nil || code != http.StatusOK || f.Goroutines == 0 || f.HeapBytes == 0 {
		v.t.Fatalf("the status has no figures: %d %s %v", code, text, err)
	}
	f.files = countDescriptors(v.cmd.Process.Pid)
	var err error
	if f.rss, err = programtest.ResidentMemory(v.cmd.Process.Pid); err != nil {
		v.t.Fatal(err)
	}
	return f
}

// A soak is a load of everything at once on one dowel.
type soak struct {
	*victim
	counts  [9]atomic.Int64
	end     time.Time
	killing sync.Mutex
}

// Attack 96: clients of both eras and all transports call, cancel, listen, ask, read nothing and go
// without a word, while servers are killed. Expected: afterwards all servers are ready, and dowel's
// goroutines, descriptors and memory return to a bound.
func TestSoak(t *testing.T) {
	v := newVictim(t)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("DOWEL_SOAK_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	last := soakTime
	if text := os.Getenv("DOWEL_SOAK"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	remote := serveRemote(t)
	v.write(v.userFile(), fmt.Sprintf(`{"mcpServers": {"every": %s, "kv": %s, "asker": %s, "twin": %s,
		"http": {"url": %q}, "old": {"url": %q}, "socket": {"url": %q}}}`, builtIn("everything"), builtIn("kv", "memory=true"),
		hostile(t, "server", "asks once"), builtIn("everything"), remote+"/mcp", remote+"/sse", "ws"+strings.TrimPrefix(remote, "http")+"/ws"))
	v.start()
	v.awaitAll()
	v.collect()
	before := v.measure()
	s := &soak{victim: v, end: time.Now().Add(last)}
	var workers sync.WaitGroup
	for i := range soakWorkers {
		workers.Go(func() { s.work(rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	workers.Wait()
	loaded := v.measure()
	v.awaitAll()
	var after figures
	defer func() {
		report := fmt.Sprintf("soak of %v, seed %d, %s\nbefore  %v\nloaded  %v\nafter   %v\n", last, seed, s.summary(), before, loaded, after)
		t.Log(report)
		if path := os.Getenv("DOWEL_SOAK_REPORT"); path != "" {
			_ = os.WriteFile(path, []byte(report), 0o600)
		}
	}()
	polltest.Until(t, "goroutines, descriptors and memory as before", func() bool {
		v.collect()
		after = v.measure()
		return after.Goroutines <= before.Goroutines+moreRoutines && after.files <= before.files+moreFiles &&
			after.HeapBytes <= before.HeapBytes+moreHeap && after.rss <= before.rss+moreMemory
	})
	v.checkServes()
}

// serveRemote starts a server that the victim's dowel reaches by its URL, and returns the URL.
func serveRemote(t *testing.T) string {
	t.Helper()
	v := &victim{t: t, home: t.TempDir(), project: t.TempDir()}
	cmd := v.command("serve", "everything", "--http", "0", "--open", "--json")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url := gatewayURL.FindString(line)
	if url == "" {
		t.Fatalf("the server does not say where it is: %q %v", line, err)
	}
	return url
}

// awaitAll waits until all servers are ready.
func (v *victim) awaitAll() {
	v.t.Helper()
	polltest.Until(v.t, "all servers are ready", func() bool {
		_, text, _ := v.exchange("GET", "/status.json", "", "Authorization", v.bearer())
		var status struct{ Servers []struct{ Status string } }
		if json.Unmarshal([]byte(text), &status) != nil || len(status.Servers) == 0 {
			return false
		}
		for _, one := range status.Servers {
			if one.Status != "ready" {
				return false
			}
		}
		return true
	})
}

// collect makes the runtime of dowel collect garbage, by calls with large messages.
func (v *victim) collect() {
	v.t.Helper()
	body := strings.Replace(echoBody, "xyzzy", strings.Repeat("x", 1<<20), 1)
	for range 12 {
		v.exchange("POST", "/mcp", body, v.echoFields()...)
	}
}

var soakActions = []string{"calls", "cancelled", "listeners", "questions left", "answers unread", "heads cut", "kills", "stdio clients", "failed dials"}

func (s *soak) summary() string {
	var parts []string
	for i, name := range soakActions {
		parts = append(parts, fmt.Sprintf("%d %s", s.counts[i].Load(), name))
	}
	return strings.Join(parts, ", ")
}

// work does random things until the end.
func (s *soak) work(random *rand.Rand) {
	for time.Now().Before(s.end) {
		switch n := random.IntN(100); {
		case n < 70:
			s.useClient(random)
		case n < 80:
			s.leaveUnread(random)
		case n < 90:
			s.cutHead(random)
		case n < 94:
			s.kill(random)
		default:
			s.leaveQuestion()
		}
	}
}

var soakServers = []string{"every", "twin", "http", "old", "socket"}

// useClient connects in one of the ways, does a few things, and goes.
func (s *soak) useClient(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), polltest.Limit)
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	base, revision := s.url, mcp.Revision("")
	if random.IntN(2) == 0 {
		revision = mcp.Revision20250618
	}
	var target any
	switch random.IntN(6) {
	case 0:
		target = base + "/sse"
		revision = ""
	case 1, 2:
		target = "ws" + strings.TrimPrefix(base, "http") + "/ws"
	case 3:
		one := s.command("up", "--stdio")
		env := map[string]string{}
		for _, value := range one.Env {
			name, text, _ := strings.Cut(value, "=")
			env[name] = text
		}
		s.counts[7].Add(1)
		target = stdio.Command{Path: one.Path, Args: one.Args[1:], Dir: one.Dir, Env: env}
	default:
		target = base + "/mcp"
	}
	c, err := client.Dial(ctx, target, &client.Options{
		Wire: client.Wire{Revision: revision}, Logger: slog.New(slog.DiscardHandler), Restart: client.Restart{Max: -1},
		HTTP: client.HTTP{Client: &http.Client{Transport: transport}, Header: func(context.Context) (http.Header, error) { return http.Header{"Authorization": {s.bearer()}}, nil }},
		Answers: client.Answers{Elicit: func(ctx context.Context, _ *client.ElicitRequest) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	})
	if err != nil {
		s.counts[8].Add(1)
		if ctx.Err() != nil {
			s.t.Errorf("a client is neither connected nor refused: %v", err)
		}
		return
	}
	defer c.Close()
	for range 1 + random.IntN(6) {
		s.useOnce(ctx, c, random)
	}
}

func (s *soak) useOnce(ctx context.Context, c *client.Client, random *rand.Rand) {
	server := soakServers[random.IntN(len(soakServers))]
	switch random.IntN(5) {
	case 0:
		short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(30))*time.Millisecond)
		defer cancel()
		_, _ = client.Call[string](short, c, server+"__slow", map[string]any{"seconds": 60}) // its result is the cancellation
		s.counts[1].Add(1)
	case 1:
		if w, err := c.Watch(ctx, mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://watched-resource"}}); err == nil && random.IntN(2) == 0 {
			w.Close() // otherwise it ends with its client
		}
		s.counts[2].Add(1)
	case 2:
		short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(60))*time.Millisecond)
		defer cancel()
		_, _ = client.Call[string](short, c, "asker__good", map[string]any{}) // its question stays open
		s.counts[3].Add(1)
	default:
		_, err := client.Call[string](ctx, c, server+"__echo", map[string]string{"message": strings.Repeat("x", random.IntN(1<<16))})
		if ctx.Err() != nil {
			s.t.Errorf("a call of %s is neither answered nor given up: %v", server, err)
		}
		s.counts[0].Add(1)
	}
}

// leaveUnread calls for a large answer and does not read it.
func (s *soak) leaveUnread(random *rand.Rand) {
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		return
	}
	defer conn.Close()
	body := strings.Replace(echoBody, "xyzzy", strings.Repeat("x", 1+random.IntN(2<<20)), 1)
	_ = conn.SetWriteDeadline(time.Now().Add(polltest.Limit))
	_, _ = io.WriteString(conn, s.head("POST /mcp HTTP/1.1", length(body))+body)
	pause(random, 50)
	s.counts[4].Add(1)
}

// cutHead sends a part of a request and goes.
func (s *soak) cutHead(random *rand.Rand) {
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		return
	}
	defer conn.Close()
	text := s.head("POST /mcp HTTP/1.1", length(echoBody)) + echoBody
	_, _ = io.WriteString(conn, text[:random.IntN(len(text))])
	if tcp, ok := conn.(*net.TCPConn); ok && random.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // a reset
	}
	pause(random, 20)
	s.counts[5].Add(1)
}

// leaveQuestion calls a tool that asks, and never answers the question.
func (s *soak) leaveQuestion() {
	fields := s.echoFields()
	fields[len(fields)-1] = "asker__good"
	s.exchange("POST", "/mcp", askBody(""), fields...)
	s.counts[3].Add(1)
}

// kill kills one of the servers. Later kills are rarer, since pauses between restarts grow.
func (s *soak) kill(random *rand.Rand) {
	s.killing.Lock()
	defer s.killing.Unlock()
	if n := s.counts[6].Load(); n > 3 && random.IntN(int(n)) > 2 {
		return
	}
	servers := children(s.t, s.cmd.Process.Pid, "serve\x00")
	if len(servers) > 0 {
		_ = syscall.Kill(servers[random.IntN(len(servers))], syscall.SIGKILL)
		s.counts[6].Add(1)
	}
}

// pause is a part of the load: how long a client stays before it goes.
func pause(random *rand.Rand, most int) {
	timer := time.NewTimer(time.Duration(random.IntN(most)) * time.Millisecond)
	defer timer.Stop()
	<-timer.C
}
