package control_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// keepChat writes a conversation with one call and a long result.
func keepChat(t *testing.T, folder string) *session.Session {
	t.Helper()
	s := session.New(folder, session.Header{Folder: "/notes", Model: "qwen3"})
	t.Cleanup(func() { s.Close() })
	user := agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("read my notes")}}
	for _, step := range []func() error{
		func() error { return s.Message(user) },
		func() error {
			return s.Prompt(agent.Conversation{System: "be kind", Messages: []agent.Message{user}, Tools: []mcp.Tool{{Name: "files__read", InputSchema: json.RawMessage(`{"type":"object"}`)}}})
		},
		func() error {
			return s.Message(agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.UseTool("1", "files__read", json.RawMessage(`{"path":"notes"}`))}})
		},
		func() error { return s.Started("1") },
		func() error {
			return s.Result(mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{mcp.Text(strings.Repeat("x", 100_000))}})
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// chatsAPI returns the API of a dowel with conversations.
func chatsAPI(t *testing.T, chats *control.Chats) http.Handler {
	t.Helper()
	h := hub.New(nil)
	t.Cleanup(func() { h.Close() })
	return control.ConsoleAPI(control.Running{Life: t.Context(), Controller: &controller{h, nil}, Hub: h, Chats: chats})
}

// Conversations are listed and filtered. Long texts are cut, and the part alone has them whole.
func TestChats(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := keepChat(t, folder)
	chats := control.NewChats(folder)
	api := chatsAPI(t, chats)
	for filter, want := range map[string]int{"": 1, "?q=NOTES+qwen3": 1, "?q=other": 0} {
		if list := askAPI[control.ChatList](t, api, "GET", "/v1/chats"+filter, ""); len(list.Chats) != want || want == 1 && (list.Chats[0].Words != "read my notes" || list.Chats[0].Live != nil) {
			t.Errorf("%s: %+v", filter, list)
		}
	}
	path := "/v1/chats/" + s.Header().ID
	chat := askAPI[control.Chat](t, api, "GET", path, "")
	if len(chat.Entries) != 2 || len(chat.Entries[1].Calls) != 1 {
		t.Fatalf("%+v", chat)
	}
	if c := chat.Entries[1].Calls[0]; c.Status != "ok" || c.Size != 100_000 || len(c.Result) >= c.Size {
		t.Errorf("%s, %d of %d bytes", c.Status, len(c.Result), c.Size)
	}
	if whole := askAPI[session.Entry](t, api, "GET", path+"/entries/1", ""); len(whole.Calls[0].Result) != 100_000 {
		t.Errorf("%d bytes", len(whole.Calls[0].Result))
	}
	if p := askAPI[session.Prompt](t, api, "GET", path+"/prompts/1", ""); p.System != "be kind" || len(p.Tools) != 1 || p.Tokens.PerTool[0] == 0 {
		t.Errorf("%+v", p)
	}
	for _, missing := range []string{"/v1/chats/nobody", path + "/entries/9", path + "/entries/x", path + "/prompts/2", "/v1/chats/..%2Fsecret"} {
		if wrong := askAPI[map[string]any](t, api, "GET", missing, ""); wrong["error"] == "" || wrong["error"] == nil {
			t.Errorf("%s: %v", missing, wrong)
		}
	}
	release := chats.Attach(control.AgentProgram{Session: s.Header().ID, Program: "dowel chat", PID: 7})
	if list := askAPI[control.ChatList](t, api, "GET", "/v1/chats", ""); list.Chats[0].Live == nil || list.Chats[0].Live.PID != 7 {
		t.Errorf("%+v", list)
	}
	release()
	if list := askAPI[control.ChatList](t, api, "GET", "/v1/chats", ""); list.Chats[0].Live != nil {
		t.Error("the program is there although it has ended")
	}
}

// A reader of a conversation waits for a change of its file or its program, and for some time at
// most.
func TestChatsWait(t *testing.T) {
	folder := t.TempDir()
	s := keepChat(t, folder)
	synctest.Test(t, func(t *testing.T) {
		chats := control.NewChats(folder)
		chat, err := chats.Read(t.Context(), s.Header().ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(){
			"message": func() {
				if err := s.Message(agent.Message{Role: mcp.RoleAssistant, Content: []mcp.Content{mcp.Text("done")}}); err != nil {
					t.Error(err)
				}
			},
			"program": func() { chats.Attach(control.AgentProgram{Session: s.Header().ID}) },
		} {
			read := make(chan control.Chat)
			go func() {
				next, err := chats.Read(t.Context(), s.Header().ID, chat.Seen)
				if err != nil {
					t.Error(err)
				}
				read <- next
			}()
			synctest.Wait()
			select {
			case <-read:
				t.Errorf("%s: the reader does not wait", name)
			default:
			}
			change()
			chat = <-read
		}
		if len(chat.Entries) != 3 || chat.Live == nil {
			t.Errorf("%+v", chat)
		}
	})
}
