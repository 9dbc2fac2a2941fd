package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// faults are child processes that misbehave.
var faults = map[string]func(){
	"mortal": mortal,
	"silent": func() { _, _ = io.Copy(io.Discard, os.Stdin) },
	"flood":  flood,
	"pages":  pages,
	"asks":   asks,
}

// quiet drops log messages that the tests provoke.
var quiet = slog.New(slog.DiscardHandler)

// faulty returns a command that runs a role.
func faulty(role string, args ...string) stdio.Command {
	c := child(role)
	c.Args = append(c.Args, args...)
	c.Env = map[string]string{"GORACE": "atexit_sleep_ms=0"} // else each exit takes a second
	return c
}

// before calls do before each request of a method.
func before(method string, do func(req *mcp.Request) *mcp.Result) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == method {
				if res := do(req); res != nil {
					return res, nil
				}
			}
			return next.ServeMCP(ctx, req)
		})
	}
}

const lifetime = 200 * time.Millisecond

// mortal serves, and kills its process 200 ms after the first list, as long as a file exists.
func mortal() {
	var once sync.Once
	_ = stdio.Serve(context.Background(), mcp.Chain(echo("mortal"), before(mcp.MethodListTools, func(*mcp.Request) *mcp.Result {
		once.Do(func() {
			time.AfterFunc(lifetime, func() {
				if _, err := os.Stat(os.Args[2]); err != nil {
					return
				}
				if self, err := os.FindProcess(os.Getpid()); err == nil {
					_ = self.Kill()
				}
			})
		})
		return nil
	})))
}

// An upstream dies repeatedly under load: each call ends with a reply or an error, other upstreams
// are not affected, and it recovers when it stops dying.
func TestKilledUnderLoad(t *testing.T) {
	deadly := t.TempDir() + "/deadly"
	if err := os.WriteFile(deadly, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h := start(t, hub.Options{MinBackoff: 10 * time.Millisecond, MaxBackoff: 40 * time.Millisecond, Logger: quiet},
		hub.Definition{Name: "mortal", Target: faulty("mortal", deadly)},
		hub.Definition{Name: "child", Target: faulty("serve")},
		hub.Definition{Name: "inside", Target: echo("inside")},
	)
	settled(t, h)
	since := map[string]time.Time{"child": h.Upstream("child").State().Since, "inside": h.Upstream("inside").State().Since}
	ctx, cancel := context.WithCancel(t.Context())
	var deaths atomic.Int64
	watched := make(chan struct{})
	events := h.Events(ctx, hub.StateChanged)
	go func() {
		defer close(watched)
		for e := range events {
			if e.Upstream == "mortal" && (e.State.Status == hub.Failed || e.State.Cause == "the connection was lost") {
				deaths.Add(1)
			}
		}
	}()
	var replies, refusals atomic.Int64
	var callers sync.WaitGroup
	end := time.Now().Add(time.Minute)
	seenAll := func() bool { return deaths.Load() >= 3 && replies.Load() > 0 && refusals.Load() > 0 }
	for i := range 4 {
		callers.Go(func() {
			for n := 0; !seenAll() && time.Now().Before(end); n++ {
				for _, u := range h.Upstreams() {
					said := fmt.Sprintf("caller %d, call %d", i, n)
					limit, done := context.WithTimeout(t.Context(), time.Minute)
					got, err := callWithin(limit, u, said)
					late := limit.Err() != nil
					done()
					switch {
					case late:
						t.Errorf("%s: %s hangs", u.Name(), said)
					case err == nil && !strings.Contains(got, said):
						t.Errorf("%s: %s is answered by %s", u.Name(), said, got)
					case err == nil && u.Name() == "mortal":
						replies.Add(1)
					case err != nil && u.Name() != "mortal":
						t.Errorf("%s, whom nobody has killed: %v", u.Name(), err)
					case err != nil && !errors.Is(err, mcp.ErrConnection):
						t.Errorf("an error that does not say that the connection is lost: %v", err)
					case err != nil:
						refusals.Add(1)
						time.Sleep(5 * time.Millisecond) // leave time for a restart
					}
				}
			}
		})
	}
	callers.Wait()
	cancel()
	<-watched
	t.Logf("%d deaths, %d replies, %d errors", deaths.Load(), replies.Load(), refusals.Load())
	if !seenAll() {
		t.Error("that is no test of it")
	}
	if err := os.Remove(deadly); err != nil {
		t.Fatal(err)
	}
	until(t, "it is back, and stays", func() bool {
		s := h.Upstream("mortal").State()
		return s.Status == hub.Ready && time.Since(s.Since) > 2*lifetime
	})
	if _, err := call(t, h.Upstream("mortal"), "hi"); err != nil {
		t.Error(err)
	}
	for name, was := range since {
		if !h.Upstream(name).State().Since.Equal(was) {
			t.Errorf("%s was restarted", name)
		}
	}
}

// callWithin calls the tool echo with a context.
func callWithin(ctx context.Context, u *hub.Upstream, text string) (string, error) {
	resp, err := u.RoundTrip(ctx, hub.Caller{}, &mcp.Request{
		Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":"echo","arguments":{"Text":%q}}`, text),
	})
	if err != nil {
		return "", err
	}
	return string(resp.Raw), nil
}

// An upstream that never answers the handshake delays no other one, and calls to it no longer than
// their limit.
func TestNeverAnswers(t *testing.T) {
	silent := hub.Definition{Name: "silent", Target: faulty("silent")}
	silent.Options.Limits.Start = 3 * time.Second
	h := start(t, hub.Options{MinBackoff: time.Minute, Logger: quiet}, silent, hub.Definition{Name: "ready", Target: echo("ready")})
	u := h.Upstream("silent")
	until(t, "the other one is ready", func() bool { return h.Upstream("ready").State().Status == hub.Ready })
	if s := u.State().Status; s != hub.Starting {
		t.Errorf("the silent one is %v already: the other one has waited for it", s)
	}

	const wait = 100 * time.Millisecond
	g := gateway.New(h, &gateway.Options{StartWait: wait, Logger: quiet})
	defer g.Close()
	began := time.Now()
	res, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
	if took := time.Since(began); err != nil || took > time.Minute {
		t.Errorf("a list takes %v, %v", took, err)
	} else if list := string(res.Raw); !strings.Contains(list, `"ready__echo"`) || !strings.Contains(list, `"server":"silent","status":"starting"`) {
		t.Errorf("%s", list)
	}

	limit, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = callWithin(limit, u, "hi")
	wantDown(t, err, hub.Starting, "the server silent is starting")

	began = time.Now()
	_, err = callWithin(t.Context(), u, "hi") // as long as the start may take
	if took := time.Since(began); took > silent.Options.Limits.Start+time.Minute {
		t.Errorf("a call has waited for %v", took)
	}
	wantDown(t, err, hub.Failed, "the server silent failed: ")
	began = time.Now()
	_, err = callWithin(t.Context(), u, "hi")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("a call of what has failed has waited for %v", took)
	}
	wantDown(t, err, hub.Failed, "3s")
}

func wantDown(t *testing.T, err error, status hub.Status, why string) {
	t.Helper()
	var down *hub.DownError
	if !errors.As(err, &down) || down.State.Status != status || !strings.Contains(err.Error(), why) || !errors.Is(err, mcp.ErrConnection) {
		t.Errorf("%v\nis no DownError of something %v that says %q", err, status, why)
	}
}

const (
	flooding = 100 << 20
	endless  = 10 << 20 // of it, without a line break
)

// flood serves, and writes 100 MB to stderr: lines, and 10 MB without a line break.
func flood() {
	s := echo("flood")
	var written atomic.Int64
	server.Tool(s, "written", "Tells how much it has written.", func(context.Context, struct{}) (string, error) { return fmt.Sprint(written.Load()), nil })
	go func() {
		text := strings.Repeat("All work and no play. ", 300)
		for n := 0; n < flooding; written.Store(int64(n)) {
			end := "\n"
			if n > flooding/2 && n < flooding/2+endless {
				end = ""
			}
			wrote, _ := os.Stderr.WriteString(text + end)
			n += wrote
		}
	}()
	_ = stdio.Serve(context.Background(), s)
}

// An upstream that floods stderr costs neither memory nor time of calls.
func TestFloodsStderr(t *testing.T) {
	before := heap()
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "flood", Target: faulty("flood")})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := h.Events(ctx, hub.StderrWritten) // of a listener that does not listen
	settled(t, h)
	u := h.Upstream("flood")
	var most int64
	var slowest time.Duration
	calls := 0
	for written := 0; written < flooding; calls++ {
		began := time.Now()
		if _, err := callWithin(ctx, u, "hi"); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		written = tellsNumber(t, u, "written")
		most = max(most, heap())
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("%d calls, the slowest %v; at most %d KB", calls, slowest, (most-before)>>10)
	const bound = 48 << 20 // 4,096 events that wait, of 4 KiB each, the tail of 2 MiB, the ring and buffers
	if most-before > bound {
		t.Errorf("it has taken %d MB", (most-before)>>20)
	}
	if slowest > time.Minute {
		t.Errorf("a call has taken %v", slowest)
	}
	lines := stderrOf(u)
	if len(lines) > 500 || len(lines) < 100 {
		t.Errorf("%d lines are kept", len(lines))
	}
	for _, line := range lines {
		if len(line) > 4<<10 {
			t.Fatalf("a line of %d bytes is kept", len(line))
		}
	}
	missed := 0
	for e := range events {
		missed += e.Missed
		cancel()
	}
	if missed == 0 {
		t.Error("who has not listened is told of no loss")
	}
}

// tellsNumber calls a tool that returns a number.
func tellsNumber(t *testing.T, u *hub.Upstream, tool string) (n int) {
	t.Helper()
	resp, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{
		Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":%q,"arguments":{}}`, tool),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(resp.Raw, &out); err != nil || len(out.Content) != 1 {
		t.Fatalf("%s, %v", resp.Raw, err)
	}
	if n, err = strconv.Atoi(out.Content[0].Text); err != nil {
		t.Fatal(err)
	}
	return n
}

// heap returns the memory in use after garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

const grown = 60

// pages serves lists of tools that are wrong in the way that its argument names.
func pages() {
	s := server.New("pages", "1", &server.Options{PageSize: 4, Logger: quiet})
	server.Tool(s, "echo", "Says it again.", func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
	server.Prompt(s, "greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	more := func(i int) {
		server.Tool(s, fmt.Sprintf("more_%03d", i), "More.", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	for i := range 10 {
		more(i)
	}
	n := 10
	page := func(name, cursor string) *mcp.Result {
		return &mcp.Result{Raw: fmt.Appendf(nil, `{"tools":[{"name":%q,"inputSchema":{"type":"object"}}],"nextCursor":%q}`, name, cursor)}
	}
	kind := os.Args[2]
	_ = stdio.Serve(context.Background(), mcp.Chain(s, before(mcp.MethodListTools, func(*mcp.Request) *mcp.Result {
		n++
		switch kind {
		case "grows":
			if n <= grown {
				more(n - 1)
			}
		case "repeats":
			return page("echo", "again")
		case "endless":
			return page(fmt.Sprint("endless_", n), fmt.Sprint(n))
		}
		return nil
	})))
}

// Lists that grow while they are read are read to their end. Endless lists are given up, without
// harm to others.
func TestStrangeLists(t *testing.T) {
	h := start(t, hub.Options{Logger: quiet},
		hub.Definition{Name: "grows", Target: faulty("pages", "grows")},
		hub.Definition{Name: "repeats", Target: faulty("pages", "repeats")},
		hub.Definition{Name: "endless", Target: faulty("pages", "endless")},
		hub.Definition{Name: "other", Target: echo("other")},
	)
	until(t, "the other one is ready", func() bool { return h.Upstream("other").State().Status == hub.Ready })
	settled(t, h)
	if got := wires(h.Catalog().Items(hub.Prompt)); !slices.Equal(got, []string{"grows__greet", "repeats__greet", "endless__greet", "other__greet"}) {
		t.Errorf("prompts: %v", got)
	}
	var want []string
	for i := range grown {
		want = append(want, fmt.Sprintf("grows__more_%03d", i))
	}
	until(t, "what has grown is there", func() bool {
		var got []string
		for _, item := range h.Catalog().Items(hub.Tool) {
			if strings.HasPrefix(item.WireName, "grows__more") {
				got = append(got, item.WireName)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	for _, u := range h.Upstreams() {
		if s := u.State(); s.Status != hub.Ready || s.Attempt != 0 {
			t.Errorf("%s: %+v", u.Name(), s)
		}
		if _, err := call(t, u, "hi"); err != nil {
			t.Errorf("%s: %v", u.Name(), err)
		}
	}
	if n := h.Catalog().Count(h.Upstream("endless"), hub.Tool); n > 1000 {
		t.Errorf("%d tools of an endless list", n)
	}
	for name, why := range map[string]string{"repeats": "comes again and again", "endless": "more than 1000 pages"} {
		u := h.Upstream(name)
		if !slices.ContainsFunc(u.Quarantined(), func(q hub.Quarantined) bool { return q.Kind == hub.Tool && strings.Contains(q.Reason, why) }) {
			t.Errorf("%s: nobody says that its list of tools %s: %v", name, why, u.Quarantined())
		}
	}
}

// Definitions change fifty times a second. Servers without a change keep running, and the last
// definitions win.
func TestAppliedAllTheTime(t *testing.T) {
	h := hub.New(&hub.Options{Logger: quiet})
	defer h.Close()
	definitions := func(i int) []hub.Definition {
		all := []hub.Definition{
			{Name: "same", Target: echo("same"), Fingerprint: "1"},
			{Name: "child", Target: faulty("serve"), Fingerprint: "1"},
			{Name: "ruled", Target: echo("ruled"), Fingerprint: "1", Policy: hub.Policy{Tools: hub.ToolRules{Rename: map[string]string{"echo": fmt.Sprint("echo_", i)}}}},
			{Name: "changes", Target: echo(fmt.Sprint("changes ", i)), Fingerprint: fmt.Sprint(i)},
			{Name: "sometimes", Target: faulty("serve"), Fingerprint: fmt.Sprint(i / 20)},
		}
		if i%2 == 1 {
			all = append(all, hub.Definition{Name: "odd", Target: echo("odd"), Fingerprint: "1"})
			slices.Reverse(all)
		}
		return all
	}
	h.Apply(definitions(0), "the test begins")
	settled(t, h)
	steady := []string{"same", "child", "ruled"}
	var since []time.Time
	for _, name := range steady {
		since = append(since, h.Upstream(name).State().Since)
	}
	const applied = 100
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 1; i <= applied; i++ {
		<-tick.C
		h.Apply(definitions(i), "the file changed")
		for _, name := range steady {
			if i%10 == 0 {
				u := h.Upstream(name)
				if _, err := u.RoundTrip(t.Context(), hub.Caller{}, &mcp.Request{Method: mcp.MethodListTools}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	until(t, "the last definition is what runs", func() bool {
		settled(t, h)
		u := h.Upstream("changes")
		return u.State().Status == hub.Ready && u.Server().Info.Name == fmt.Sprint("changes ", applied)
	})
	settled(t, h)
	for i, name := range steady {
		if s := h.Upstream(name).State(); !s.Since.Equal(since[i]) || s.Status != hub.Ready {
			t.Errorf("%s has not changed, and was restarted: %+v", name, s)
		}
	}
	var names []string
	for _, u := range h.Upstreams() {
		names = append(names, u.Name())
		if s := u.State().Status; s != hub.Ready {
			t.Errorf("%s is %v", u.Name(), s)
		}
	}
	if want := []string{"same", "child", "ruled", "changes", "sometimes"}; !slices.Equal(names, want) || h.Upstream("odd") != nil {
		t.Errorf("%v", names)
	}
	want := []string{"same__echo", "child__echo", "ruled__echo_100", "changes__echo", "sometimes__echo"}
	if got := wires(h.Catalog().Items(hub.Tool)); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	h.Close()
	goleak.VerifyNone(t)
}

// Closing a hub while its servers start ends them all, and waits for it.
func TestCloseWhileStarting(t *testing.T) {
	var definitions []hub.Definition
	for i := range 3 {
		definitions = append(definitions,
			hub.Definition{Name: fmt.Sprint("silent", i), Target: faulty("silent")},
			hub.Definition{Name: fmt.Sprint("child", i), Target: faulty("serve")},
			hub.Definition{Name: fmt.Sprint("gone", i), Target: faulty("exit")},
			hub.Definition{Name: fmt.Sprint("inside", i), Target: echo("inside")},
			hub.Definition{Name: fmt.Sprint("slow", i), Target: late(echo("slow"), time.Hour)},
			hub.Definition{Name: fmt.Sprint("web", i), Target: "http://127.0.0.1:1/mcp"},
		)
	}
	for _, after := range []time.Duration{0, 3 * time.Millisecond, 50 * time.Millisecond} {
		h := hub.New(&hub.Options{MinBackoff: 5 * time.Millisecond, Logger: quiet})
		h.Apply(definitions, "the test begins")
		all := h.Upstreams()
		called := make(chan error, 1)
		go func() { _, err := callWithin(t.Context(), all[0], "hi"); called <- err }()
		time.Sleep(after)
		began := time.Now()
		h.Close()
		if took := time.Since(began); took > time.Minute {
			t.Errorf("after %v, Close takes %v", after, took)
		}
		for _, u := range all {
			if s := u.State().Status; s != hub.Removed {
				t.Errorf("after %v, %s is %v", after, u.Name(), s)
			}
		}
		if err := <-called; !errors.Is(err, mcp.ErrConnection) {
			t.Errorf("a call that has waited: %v", err)
		}
		h.Apply(definitions, "too late")
		goleak.VerifyNone(t)
	}
}

// late returns a server that waits before its first answer.
func late(h mcp.Handler, delay time.Duration) mcp.Handler {
	var once sync.Once
	thought := make(chan struct{})
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		once.Do(func() { time.AfterFunc(delay, func() { close(thought) }) })
		select {
		case <-thought:
			return h.ServeMCP(ctx, req)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
}

// asks serves a legacy server that asks a question outside of any call. Its tool returns the
// answer.
func asks() {
	in := bufio.NewScanner(os.Stdin)
	answered, waiting := "", ""
	reply := func(id json.RawMessage, result string) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
	}
	tell := func() {
		if answered != "" && waiting != "" {
			reply(json.RawMessage(waiting), fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, answered))
		}
	}
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Error  *struct{ Message string }
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			return
		}
		switch {
		case m.Method == mcpwire.MethodInitialize:
			reply(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"asks","version":"1"}}`)
		case m.Method == "notifications/initialized":
			fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who is there?","requestedSchema":{"type":"object","properties":{}}}}`)
		case m.Method == mcp.MethodListTools:
			reply(m.ID, `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`)
		case m.Method == mcp.MethodCallTool:
			waiting = string(m.ID)
			tell()
		case m.Method == "" && string(m.ID) == `"q"`:
			if answered = "answered"; m.Error != nil {
				answered = m.Error.Message
			}
			tell()
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", m.ID)
		}
	}
}

// A question outside of any call is refused with the reason, and reaches no answerer.
func TestQuestionOutsideOfCalls(t *testing.T) {
	h := start(t, hub.Options{Logger: quiet}, hub.Definition{Name: "asks", Target: faulty("asks")})
	settled(t, h)
	asked := mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
		t.Error("the question has reached a caller")
		return nil, errors.New("no")
	})
	u := h.Upstream("asks")
	until(t, "it has its answer", func() bool { return u.State().Status == hub.Ready })
	ctx, cancel := context.WithTimeout(hub.WithAnswerer(t.Context(), asked), time.Minute)
	defer cancel()
	got, err := callWithin(ctx, u, "")
	if err != nil || !strings.Contains(got, "elicitation/create is refused, because it is not clear which client to ask") || !strings.Contains(got, "asks") {
		t.Errorf("%s, %v", got, err)
	}
}

// After Apply, state and catalog are at once the new definition's.
func TestChangedAtOnce(t *testing.T) {
	cache := memoryCache{}
	h := start(t, hub.Options{Logger: quiet, MinBackoff: time.Minute, Cache: cache}, hub.Definition{Name: "x", Target: faulty("serve"), Fingerprint: "1"})
	settled(t, h)
	u := h.Upstream("x")
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes := h.Events(limit, hub.CatalogChanged)
	for i, target := range []any{late(echo("two"), 20*time.Millisecond), faulty("exit"), faulty("pages", "repeats")} {
		h.Apply([]hub.Definition{{Name: "x", Target: target, Fingerprint: fmt.Sprint(i + 2)}}, "the file changed")
		if s := u.State(); s.Status != hub.Starting || s.Cause != "the file changed" {
			t.Errorf("%d: %+v", i, s)
		}
		if got := wires(h.Catalog().Items(hub.Tool)); i != 2 && len(got) > 0 {
			t.Errorf("%d: it still offers %v", i, got)
		}
		settled(t, h)
	}
	if got := wires(h.Catalog().Items(hub.Tool)); !slices.Equal(got, []string{"x__echo"}) {
		t.Errorf("%v", got)
	}
	announced := 0
	for range changes {
		if announced++; announced == 4 { // items removed, added, removed and added
			break
		}
	}
	if announced < 4 {
		t.Errorf("%d changes of the catalog", announced)
	}
	if kept := slices.Sorted(maps.Keys(cache)); !slices.Equal(kept, []string{"x1", "x2"}) {
		t.Errorf("kept are %v: a list that could not be read to its end is among them, or one is missing", kept)
	}
}
