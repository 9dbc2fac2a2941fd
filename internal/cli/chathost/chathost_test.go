package chathost

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/modelserver"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// newChats returns conversations with a model that replies as a script says, and the tools of the
// server everything.
func newChats(t *testing.T, script string, watch ...mcp.Middleware) (chats *control.Chats, asks *control.Asks, log *bytes.Buffer) {
	t.Helper()
	return newChatsWith(t, script, nil, watch...)
}

// newChatsWith returns the same with more servers.
func newChatsWith(t *testing.T, script string, more []hub.Definition, watch ...mcp.Middleware) (chats *control.Chats, asks *control.Asks, log *bytes.Buffer) {
	t.Helper()
	parsed, err := modelserver.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(modelserver.New(t.Error, parsed, modelserver.Chat))
	t.Cleanup(model.Close)
	home := os.Getenv("XDG_CONFIG_HOME")
	if err := os.MkdirAll(filepath.Join(home, "dowel"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"models": {"local": {"provider": "openai", "model": "gpt-test", "url": %q}}}`, model.URL+"/v1")
	if err := os.WriteFile(filepath.Join(home, "dowel", "dowel.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hub.New(nil)
	h.Apply(append([]hub.Definition{{Name: "everything", Target: everything.New(), Source: "user"}}, more...), "the test begins")
	h.Settle(t.Context())
	g := gateway.New(h, nil)
	life, end := context.WithCancel(context.Background())
	calls := control.NewCalls(life, h, func(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error) {
		return client.Dial(ctx, g, &client.Options{Answers: answers, Wire: client.Wire{Revision: revision}})
	})
	log = &bytes.Buffer{}
	app := &factory.Factory{Stdout: term.NewScreen(&bytes.Buffer{}, nil), Stderr: term.NewScreen(&bytes.Buffer{}, nil)}
	chats = control.NewChats(factory.SessionsDir())
	chats.Host = New(app, factory.Places{Project: t.TempDir()}, &daemon.AgentHub{Handler: mcp.Chain(g, watch...), Hub: h, Asks: calls.Asks, Audit: audit.NewLog(log, audit.Options{})})
	t.Cleanup(func() {
		chats.Close()
		end()
		_ = calls.Close()
		g.Close()
		h.Close()
		os.RemoveAll(factory.SessionsDir())
	})
	return chats, calls.Asks, log
}

// awaitIdle returns a conversation when its turn has ended.
func awaitIdle(t *testing.T, chats *control.Chats, id string) (chat control.Chat) {
	t.Helper()
	polltest.Until(t, "the turn ends", func() bool {
		var err error
		chat, err = chats.Read(t.Context(), id, "")
		return err == nil && chat.Here != nil && !chat.Here.IsWorking
	})
	return chat
}

// awaitAsk returns the open question.
func awaitAsk(t *testing.T, asks *control.Asks) (ask control.Ask) {
	t.Helper()
	polltest.Until(t, "a question is open", func() bool {
		list := asks.List()
		if len(list.Asks) == 1 {
			ask = list.Asks[0]
		}
		return len(list.Asks) == 1
	})
	return ask
}

// A call that needs an approval waits for the user of the console: refused, it does not run, and
// the model reads why; allowed for the session, it is not asked about again. The decisions are in
// the audit log and in the conversation, which has the form of dowel chat. A second message
// continues it.
func TestApprovalsOfHostedChat(t *testing.T) {
	echo := `"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]`
	chats, asks, log := newChats(t, `{"turns": [{`+echo+`}, {"expect": ["not now"], `+echo+`}, {"expect": ["hello"], `+echo+`}, {"expect": ["hello"], "text": "Done."}, {"text": "Again."}]}`)
	id, err := chats.Start(t.Context(), control.ChatOptions{Model: "local", Text: "greet"})
	if err != nil {
		t.Fatal(err)
	}
	ask := awaitAsk(t, asks)
	if ask.Chat != id || ask.Approval == nil || ask.Approval.Tool != "everything.echo" || ask.Client != control.HostProgram {
		t.Errorf("%+v", ask)
	}
	if chat, err := chats.Read(t.Context(), id, ""); err != nil || chat.Entries[len(chat.Entries)-1].Calls[0].Status != "waiting" {
		t.Errorf("%+v, %v", chat.Entries, err)
	}
	if err := asks.Answer(ask.ID, control.AskAnswer{Action: mcp.ElicitDecline, Reason: "not now"}); err != nil {
		t.Fatal(err)
	}
	if err := asks.Answer(awaitAsk(t, asks).ID, control.AskAnswer{Action: mcp.ElicitAccept, Scope: control.ScopeTool}); err != nil {
		t.Fatal(err)
	}
	chat := awaitIdle(t, chats, id)
	var calls []session.CallEntry
	for _, e := range chat.Entries {
		calls = append(calls, e.Calls...)
	}
	if len(calls) != 3 || calls[0].Status != "refused" || calls[0].Decision == nil || calls[0].Decision.At != "the console" || calls[1].Status != "ok" || calls[2].Status != "ok" {
		t.Errorf("%+v", calls)
	}
	if text := log.String(); strings.Count(text, `"allowed"`) != 2 || strings.Count(text, `"refused"`) != 1 || !strings.Contains(text, `"by":"session"`) {
		t.Error(text)
	}
	if err := chats.Continue(t.Context(), id, "and again"); err != nil {
		t.Fatal(err)
	}
	if chat = awaitIdle(t, chats, id); chat.Entries[len(chat.Entries)-1].Text != "Again." || chat.Model != "local" {
		t.Errorf("%+v", chat.Entries)
	}
}

// A conversation can be stopped while it waits for an approval, and its call has not run then. It
// continues with a new agent and its own model after dowel has closed the first one.
func TestStoppedHostedChatContinues(t *testing.T) {
	chats, asks, _ := newChats(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]}, {"expect": ["go on"], "text": "Here."}]}`)
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "greet"})
	if err != nil {
		t.Fatal(err)
	}
	awaitAsk(t, asks)
	if err := chats.Stop(id); err != nil {
		t.Fatal(err)
	}
	if chat := awaitIdle(t, chats, id); chat.Here.Problem != "" {
		t.Errorf("%+v", chat.Here)
	}
	if len(asks.List().Asks) != 0 {
		t.Error("the question is still open")
	}
	detach := chats.Attach(control.AgentProgram{Session: id, Program: "dowel chat"}) // does not end the agent of this process
	detach()
	if err := chats.Continue(t.Context(), id, "go on"); err != nil {
		t.Fatal(err)
	}
	if chat := awaitIdle(t, chats, id); chat.Entries[len(chat.Entries)-1].Text != "Here." {
		t.Errorf("%+v", chat.Entries)
	}
}

// In the mode read-only a tool that may change something is refused without a question. Unknown
// modes and models, and the mode that allows every tool, are refused.
func TestModesOfHostedChat(t *testing.T) {
	chats, asks, _ := newChats(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]}, {"expect": ["read-only"], "text": "It was refused."}]}`)
	for _, o := range []control.ChatOptions{{Mode: "all"}, {Mode: "everything"}, {Model: "other"}} {
		o.Text = "hello"
		if _, err := chats.Start(t.Context(), o); err == nil {
			t.Errorf("%+v begins", o)
		}
	}
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "hello", Mode: "read-only"})
	if err != nil {
		t.Fatal(err)
	}
	if chat := awaitIdle(t, chats, id); chat.Here.Mode != "read-only" || chat.Here.Problem != "" {
		t.Errorf("%+v", chat.Here)
	}
	if closed := asks.List().Closed; len(closed) != 0 {
		t.Errorf("%+v", closed)
	}
}

// A conversation keeps its mode when its agent has been closed, and so does one without a stored
// mode: it asks.
func TestModeOfContinuedHostedChat(t *testing.T) {
	call := `{"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]}, {"text": "It was refused."}`
	for _, mode := range []string{"read-only", "none", "all", ""} {
		t.Run("mode "+mode, func(t *testing.T) {
			first, asks, _ := newChats(t, `{"turns": [{"text": "Hello."}, `+call+`]}`)
			start := control.ChatOptions{Text: "hello", Mode: mode}
			if !slices.Contains(modes, mode) {
				start.Mode = ""
			}
			id, err := first.Start(t.Context(), start)
			if err != nil {
				t.Fatal(err)
			}
			awaitIdle(t, first, id)
			first.Close()
			setStoredMode(t, id, mode)
			chats := control.NewChats(factory.SessionsDir())
			chats.Host = first.Host
			defer chats.Close()
			if chat, err := chats.Read(t.Context(), id, ""); err != nil || chat.Mode != mode {
				t.Errorf("the mode in the file is %q, %v", chat.Mode, err)
			}
			if err := chats.Continue(t.Context(), id, "greet"); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(modes, mode) {
				if err := asks.Answer(awaitAsk(t, asks).ID, control.AskAnswer{Action: mcp.ElicitDecline}); err != nil {
					t.Fatal(err)
				}
				mode = "ask"
			}
			chat := awaitIdle(t, chats, id)
			if last := chat.Entries[len(chat.Entries)-1]; chat.Here.Mode != mode || last.Text != "It was refused." {
				t.Errorf("%+v, %+v", chat.Here, last)
			}
		})
	}
}

// setStoredMode replaces the mode in the file of a conversation, or removes it.
func setStoredMode(t *testing.T, id, mode string) {
	t.Helper()
	path := filepath.Join(factory.SessionsDir(), id+".jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"event":"mode"`) {
			if mode == "" {
				continue
			}
			line = regexp.MustCompile(`"data":.*`).ReplaceAllString(line, `"data":{"mode":"`+mode+`"}}`)
		}
		kept = append(kept, line)
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A question of a server during a call goes to the user of the console, and belongs to the
// conversation. A failure of the model is said.
func TestQuestionsOfHostedChat(t *testing.T) {
	chats, asks, _ := newChats(t, `{"turns": [{"calls": [{"name": "everything__test_elicitation", "arguments": {"message": "Who are you?"}}]}, {"fail": {"status": 400, "message": "no more"}}]}`)
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "ask me"})
	if err != nil {
		t.Fatal(err)
	}
	if err := asks.Answer(awaitAsk(t, asks).ID, control.AskAnswer{Action: mcp.ElicitAccept}); err != nil {
		t.Fatal(err)
	}
	var ask control.Ask
	polltest.Until(t, "the server asks", func() bool {
		list := asks.List().Asks
		if len(list) == 1 {
			ask = list[0]
		}
		return len(list) == 1 && list[0].Approval == nil
	})
	if ask.Server != "everything" || ask.Chat != id || !strings.Contains(ask.Message, "Who are you?") || time.Since(ask.Since) > time.Hour {
		t.Errorf("%+v", ask)
	}
	if err := asks.Answer(ask.ID, control.AskAnswer{Action: mcp.ElicitDecline}); err != nil {
		t.Fatal(err)
	}
	if chat := awaitIdle(t, chats, id); !strings.Contains(chat.Here.Problem, "no more") {
		t.Errorf("%+v", chat.Here)
	}
}

// A conversation is the same client of the gateway as in dowel chat, which may continue it.
func TestHostedChatIsClient(t *testing.T) {
	var mu sync.Mutex
	var clients []string
	watch := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				mu.Lock()
				clients = append(clients, req.Principal.ID)
				mu.Unlock()
			}
			return next.ServeMCP(ctx, req)
		})
	}
	chats, asks, _ := newChats(t, `{"turns": [{"calls": [{"name": "everything__echo", "arguments": {"message": "hello"}}]}, {"text": "Done."}]}`, watch)
	id, err := chats.Start(t.Context(), control.ChatOptions{Text: "greet"})
	if err != nil {
		t.Fatal(err)
	}
	if err := asks.Answer(awaitAsk(t, asks).ID, control.AskAnswer{Action: mcp.ElicitAccept}); err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, chats, id)
	mu.Lock()
	defer mu.Unlock()
	if len(clients) != 1 || clients[0] != "agent "+id {
		t.Errorf("the calls are of %q, want of the conversation %s", clients, id)
	}
}
