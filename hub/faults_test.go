package hub_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/stdio"
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
		t.Error("too little happened to test it")
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

// A call that was made when a start began outlasts the start's limit, so that its error has the
// cause of the failure.
func TestCallAwaitsCauseOfFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := hub.Definition{Name: "silent", Target: mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (*mcp.Result, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})}
		silent.Options.Limits.Connect = 3 * time.Second
		h := hub.New(&hub.Options{MinBackoff: time.Minute, Logger: quiet})
		defer h.Close()
		h.Apply([]hub.Definition{silent}, "the test begins")
		_, err := callWithin(t.Context(), h.Upstream("silent"), "hi")
		wantDown(t, err, hub.Failed, "3s")
	})
}
