package control_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// scriptedHost makes agents. The test ends their turns.
type scriptedHost struct {
	folder string
	opened atomic.Int32
	closed atomic.Int32
	end    chan error // ends a turn
}

func (h *scriptedHost) Models() control.ChatModels {
	return control.ChatModels{Models: []string{"local"}, Default: "local"}
}

func (h *scriptedHost) Open(_ context.Context, o control.ChatOptions) (control.ChatAgent, error) {
	if o.Model == "missing" {
		return nil, errors.New("there is no such model")
	}
	n := h.opened.Add(1)
	id := o.Session
	if id == "" {
		id = fmt.Sprintf("20261128-12%04d-abcd", n)
	}
	return &scriptedAgent{h, cmp.Or(o.Mode, "ask"), session.At(filepath.Join(h.folder, id+".jsonl"), session.Header{ID: id})}, nil
}

type scriptedAgent struct {
	host *scriptedHost
	mode string
	file *session.Session
}

func (a *scriptedAgent) ID() string   { return a.file.Header().ID }
func (a *scriptedAgent) Mode() string { return a.mode }
func (a *scriptedAgent) Close() {
	_ = a.file.Close() // Windows removes no open file
	a.host.closed.Add(1)
}
func (a *scriptedAgent) Send(text string) (func(context.Context, func(control.ChatProgress)) error, error) {
	_ = a.file.Message(agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text(text)}}) // a file that is there already is refused
	return func(ctx context.Context, show func(control.ChatProgress)) error {
		show(control.ChatProgress{Draft: "so far"})
		select {
		case err := <-a.host.end:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, nil
}

// A conversation of this process takes one message at a time, can be stopped, and says why a turn
// has failed. Its agent is closed after a long pause, when another program continues the
// conversation, and with dowel.
func TestHostedChats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &scriptedHost{folder: t.TempDir(), end: make(chan error)}
		chats := control.NewChats(host.folder)
		chats.Host = host
		defer chats.Close()
		id, err := chats.Start(t.Context(), control.ChatOptions{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		read := func() control.Chat {
			t.Helper()
			synctest.Wait()
			chat, err := chats.Read(t.Context(), id, "")
			if err != nil {
				t.Fatal(err)
			}
			return chat
		}
		if c := read(); c.Here == nil || !c.Here.IsWorking || c.Here.Mode != "ask" || c.Live == nil || c.Live.Program != control.HostProgram || len(c.Entries) != 1 {
			t.Errorf("%+v", c)
		}
		if err := chats.Continue(t.Context(), id, "and?"); err == nil || !strings.Contains(err.Error(), "still works") {
			t.Error(err)
		}
		if err := chats.Stop(id); err != nil {
			t.Error(err)
		}
		if c := read(); c.Here.IsWorking || c.Here.Problem != "" {
			t.Errorf("%+v", c.Here)
		}
		if err := chats.Stop(id); err == nil {
			t.Error("nothing was stopped")
		}
		if err := chats.Continue(t.Context(), id, "and?"); err != nil {
			t.Error(err)
		}
		host.end <- errors.New("the model is gone, with Bearer abcdefghijklmnopqrstuvwxyz0123456789")
		if c := read(); !strings.HasPrefix(c.Here.Problem, "the model is gone") || strings.Contains(c.Here.Problem, "xyz0123") {
			t.Errorf("%+v", c.Here)
		}
		if host.opened.Load() != 1 {
			t.Errorf("%d agents", host.opened.Load())
		}
		time.Sleep(31 * time.Minute)
		if c := read(); c.Here != nil || c.Live != nil || host.closed.Load() != 1 {
			t.Errorf("%+v", c)
		}
		if err := chats.Continue(t.Context(), id, "again"); err != nil { // gets a new agent
			t.Error(err)
		}
		host.end <- nil
		synctest.Wait()
		if host.opened.Load() != 2 {
			t.Errorf("%d agents", host.opened.Load())
		}
		if err := chats.Continue(t.Context(), id, "again"); err != nil {
			t.Error(err)
		}
		host.end <- session.ErrElsewhere
		if c := read(); c.Here != nil || host.closed.Load() != 2 {
			t.Errorf("%+v", c)
		}
		defer chats.Attach(control.AgentProgram{Session: id, Program: "dowel chat", PID: 7})()
		if err := chats.Continue(t.Context(), id, "again"); err == nil || !strings.Contains(err.Error(), "dowel chat continues this conversation now (process 7)") {
			t.Error(err)
		}
	})
}

// A program that attaches during a turn gets the conversation at its end: the agent is closed then,
// and messages are refused at once, until the program has gone.
func TestAttachDuringTurnOfHostedChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &scriptedHost{folder: t.TempDir(), end: make(chan error)}
		chats := control.NewChats(host.folder)
		chats.Host = host
		defer chats.Close()
		id, err := chats.Start(t.Context(), control.ChatOptions{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		detach := chats.Attach(control.AgentProgram{Session: id, Program: "dowel chat", PID: 7})
		refused := func() {
			t.Helper()
			if err := chats.Continue(t.Context(), id, "and?"); err == nil || !strings.Contains(err.Error(), "process 7") {
				t.Error(err)
			}
		}
		refused()
		host.end <- nil
		synctest.Wait()
		if chat, err := chats.Read(t.Context(), id, ""); err != nil || chat.Here != nil || chat.Live.PID != 7 || host.closed.Load() != 1 {
			t.Errorf("%+v, %v", chat, err)
		}
		refused()
		detach()
		if err := chats.Continue(t.Context(), id, "and?"); err != nil {
			t.Error(err)
		}
	})
}

// The number of agents is limited. A new conversation takes the place of the agent that has been
// idle for the longest time; if all work, it is refused. The end of dowel stops all turns.
func TestHostedChatsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &scriptedHost{folder: t.TempDir(), end: make(chan error)}
		chats := control.NewChats(host.folder)
		chats.Host = host
		start := func() (string, error) { return chats.Start(t.Context(), control.ChatOptions{Text: "hello"}) }
		for range 20 {
			if _, err := start(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := start(); err == nil || !strings.Contains(err.Error(), "stop one of them") {
			t.Error(err)
		}
		host.end <- nil
		synctest.Wait()
		if _, err := start(); err != nil || host.closed.Load() != 1 {
			t.Error(err, host.closed.Load())
		}
		chats.Close()
		if host.closed.Load() != 21 {
			t.Errorf("%d agents are closed", host.closed.Load())
		}
		if _, err := start(); err == nil {
			t.Error("a conversation begins at the end")
		}
	})
}

// The API refuses messages that are empty or too long, unknown conversations, and every
// conversation in a process that hosts none.
func TestHostedChatsAPI(t *testing.T) {
	t.Parallel()
	host := &scriptedHost{folder: t.TempDir(), end: make(chan error)}
	chats := control.NewChats(host.folder)
	api := chatsAPI(t, chats)
	refused := func(path, body, want string) {
		t.Helper()
		if got := askAPI[map[string]string](t, api, "POST", path, body); !strings.Contains(got["error"], want) {
			t.Errorf("%s %.40s: %q, want %q", path, body, got["error"], want)
		}
	}
	if m := askAPI[control.ChatModels](t, api, "GET", "/v1/models", ""); m.Problem == "" {
		t.Errorf("%+v", m)
	}
	refused("/v1/chats", `{"text":"hello"}`, "begins no conversations")
	chats.Host = host
	defer chats.Close()
	refused("/v1/chats", `{"text":" "}`, "empty")
	refused("/v1/chats", `{"text":"`+strings.Repeat("x", 300_000)+`"}`, "longer than 256 KiB")
	refused("/v1/chats", `{"text":"x","model":"missing"}`, "no such model")
	refused("/v1/chats/nobody/messages", `{"text":"x"}`, "nobody")
	refused("/v1/chats/nobody/stop", `{}`, "does not work")
	started := askAPI[map[string]string](t, api, "POST", "/v1/chats", `{"text":"hello"}`)
	if started["id"] == "" {
		t.Fatalf("%v", started)
	}
	chats.Stop(started["id"])
}

// A call that is too long to be shown whole is refused, since no terminal asks about it.
func TestLongApprovalOfHostedChat(t *testing.T) {
	t.Parallel()
	calls, _ := newCalls(t)
	long := control.Approval{Program: control.HostProgram, Session: "one", Tool: "everything.echo", Arguments: `{"message": "` + strings.Repeat("x", 70_000) + `"}`}
	answer, err := calls.Asks.AskApproval(t.Context(), long)
	if err != nil || answer.Action != mcp.ElicitDecline || !strings.Contains(answer.Reason, "too long") || len(calls.Asks.List().Asks) != 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A form that is too large to be shown is declined: nobody could answer it, and the call would
// wait.
func TestLargeFormOfHostedChat(t *testing.T) {
	t.Parallel()
	calls, _ := newCalls(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	form := client.ElicitRequest{Server: "everything"}
	form.RequestedSchema = json.RawMessage(`{"type": "object", "description": "` + strings.Repeat("x", 70_000) + `"}`)
	answer, err := calls.Asks.AskElicitation(ctx, control.HostProgram, "one", &form)
	if err != nil || answer.Action != mcp.ElicitDecline || len(calls.Asks.List().Asks) != 0 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// A program learns whether the model works in a conversation of the running dowel.
func TestCheckIdle(t *testing.T) {
	t.Parallel()
	host := &scriptedHost{folder: t.TempDir(), end: make(chan error)}
	chats := control.NewChats(host.folder)
	chats.Host = host
	defer chats.Close()
	client := serveChats(t, chats)
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CheckIdle(t.Context(), id); err == nil || !strings.Contains(err.Error(), "stop it there") {
		t.Error(err)
	}
	if err := client.CheckIdle(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	host.end <- nil
	polltest.Until(t, "the turn ends", func() bool { return client.CheckIdle(t.Context(), id) == nil })
	if err := control.NewClient(filepath.Join(t.TempDir(), "none.sock")).CheckIdle(t.Context(), id); err != nil {
		t.Error(err)
	}
}

// serveChats serves conversations on a control socket.
func serveChats(t *testing.T, chats *control.Chats) *control.Client {
	t.Helper()
	h := hub.New(nil)
	t.Cleanup(func() { h.Close() })
	path := filepath.Join(t.TempDir(), "run", "dowel.sock")
	if runtime.GOOS == "windows" {
		path = `\\.\pipe\dowel-test-` + filepath.Base(t.TempDir())
	}
	l, err := control.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: control.Handler(control.Running{Life: t.Context(), Controller: &controller{h, nil}, Hub: h, Chats: chats}, nil)}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	return control.NewClient(path)
}
