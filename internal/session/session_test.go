package session_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

func user(content ...mcp.Content) agent.Message {
	return agent.Message{Role: mcp.RoleUser, Content: content}
}

func model(content ...mcp.Content) agent.Message {
	return agent.Message{Role: mcp.RoleAssistant, Content: content}
}

func call(id string) mcp.Content { return mcp.UseTool(id, "a__b", json.RawMessage(`{"x":1}`)) }

func result(id, text string) mcp.Content { return mcp.ToolResult(id, mcp.Text(text)) }

// spoken returns a conversation with every kind of content.
func spoken() []agent.Message {
	thought := model(mcp.Text("let me see"), call("1"), call("2"))
	thought.Reasoning, thought.Usage = json.RawMessage(`{"signature":"abc"}`), &agent.Usage{Input: 10, Cached: 5, Output: 3}
	return []agent.Message{
		user(mcp.Text("hello\nthere \u2028 ü"), mcp.Image([]byte{1, 2, 3}, "image/png")), thought,
		user(result("1", "one"), result("2", "two"), mcp.Text("a note")), model(mcp.Text("done")),
	}
}

func begun(t *testing.T) *session.Session {
	t.Helper()
	s := session.New(filepath.Join(t.TempDir(), "sessions"), session.Header{Folder: "/notes", Model: "qwen3"})
	t.Cleanup(func() { s.Close() })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same compares conversations as they are sent.
func same(t *testing.T, got, want []agent.Message) {
	t.Helper()
	one, _ := json.MarshalIndent(got, "", " ")
	other, _ := json.MarshalIndent(want, "", " ")
	if string(one) != string(other) {
		t.Errorf("got %s\nwant %s", one, other)
	}
}

func load(t *testing.T, path string) (*session.Session, *session.Loaded) {
	t.Helper()
	s, l, err := session.Load(path)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s, l
}

func TestAsItHappens(t *testing.T) {
	s, all := begun(t), spoken()
	if _, err := os.Stat(s.Path()); !os.IsNotExist(err) {
		t.Error("a session in which nothing was said has a file")
	}
	must(t, s.Note("early", nil)) // and an event does not make one
	must(t, s.Message(all[0]))
	must(t, s.Note("model", map[string]string{"name": "big"}))
	must(t, s.Message(all[1]))
	must(t, s.Result(*result("2", "two").ToolResult)) // the second call ends first
	must(t, s.Result(*result("1", "one").ToolResult))
	must(t, s.Message(user(mcp.Text("a note"))))
	must(t, s.Message(all[3]))
	before, err := os.ReadFile(s.Path())
	must(t, err)
	must(t, s.Sync(all))
	after, err := os.ReadFile(s.Path())
	must(t, err)
	if string(before) != string(after) {
		t.Errorf("what is in the file is written again:\n%s", after)
	}
	again, l := load(t, s.Path())
	same(t, l.Messages, all)
	if again.Header().ID != s.Header().ID || again.Header().Folder != "/notes" || again.Header().Model != "qwen3" || !again.Header().Began.Equal(s.Header().Began) {
		t.Errorf("got %+v", again.Header())
	}
	if want := []session.Event{{Name: "model", Data: json.RawMessage(`{"name":"big"}`)}}; !reflect.DeepEqual(l.Events, want) || l.Damaged != 0 {
		t.Errorf("got %s, %d damaged", l.Events, l.Damaged)
	}
	for path, mode := range map[string]os.FileMode{s.Path(): 0o600, filepath.Dir(s.Path()): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestSyncWritesWhatIsDifferent(t *testing.T) {
	s, all := begun(t), spoken()
	must(t, s.Sync(all))
	short := []agent.Message{user(mcp.Text("a summary")), model(mcp.Text("I see"))}
	must(t, s.Sync(short))
	_, l := load(t, s.Path())
	same(t, l.Messages, short)
	longer := append(short[:1:1], user(mcp.Text("x")))
	longer[0].Content = append(longer[0].Content, longer[1].Content...)
	must(t, s.Sync(longer[:1]))
	_, l = load(t, s.Path())
	same(t, l.Messages, longer[:1])
}

// A process may end at any byte: only the incomplete line is lost, and the session continues.
func TestTornAnywhere(t *testing.T) {
	s, all := begun(t), spoken()
	must(t, s.Sync(all[:2]))
	must(t, s.Result(*result("1", "one").ToolResult))
	text, err := os.ReadFile(s.Path())
	must(t, err)
	header := strings.IndexByte(string(text), '\n') + 1
	path := filepath.Join(t.TempDir(), "torn.jsonl")
	for n := range len(text) + 1 {
		must(t, os.WriteFile(path, text[:n], 0o600))
		torn, l, err := session.Load(path)
		if n < header {
			if err == nil {
				t.Fatalf("%d bytes are not a session, and are taken for one", n)
			}
			continue
		}
		must(t, err)
		if lines := strings.Count(string(text[header:n]), "\n"); l.Damaged != 0 || (lines == 0) != (len(l.Messages) == 0) {
			t.Fatalf("%d bytes with %d lines are %d messages, %d damaged", n, lines, len(l.Messages), l.Damaged)
		}
		answered(t, l.Messages)
		goOn := append(l.Messages, model(mcp.Text("on")))
		must(t, torn.Sync(goOn))
		must(t, torn.Close())
		_, l = load(t, path)
		same(t, l.Messages, goOn)
	}
}

// answered checks the demands of providers on a conversation.
func answered(t *testing.T, messages []agent.Message) {
	t.Helper()
	var open []string
	for i, m := range messages {
		if i > 0 && messages[i-1].Role == m.Role {
			t.Fatalf("message %d is of the same role as that before", i)
		}
		for j, id := range open {
			if j >= len(m.Content) || m.Content[j].ToolResult == nil || m.Content[j].ToolResult.ToolUseID != id {
				t.Fatalf("message %d does not answer %s", i, id)
			}
		}
		open = nil
		for _, use := range m.Calls() {
			open = append(open, use.ID)
		}
	}
	if len(open) > 0 {
		t.Fatalf("%v have no answer", open)
	}
}

// Unreadable lines are skipped, and the others make a conversation.
func TestDamaged(t *testing.T) {
	s, all := begun(t), spoken()
	must(t, s.Sync(all))
	text, err := os.ReadFile(s.Path())
	must(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	for i := 1; i < len(lines)-1; i++ {
		broken := append([]string(nil), lines...)
		broken[i] = "{\"message\":\n"
		path := filepath.Join(t.TempDir(), "x.jsonl")
		must(t, os.WriteFile(path, []byte(strings.Join(broken, "")), 0o600))
		_, l := load(t, path)
		if l.Damaged != 1 {
			t.Errorf("line %d: %d are damaged", i, l.Damaged)
		}
		answered(t, l.Messages)
	}
}

func TestNoSession(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty": "", "other": "{\"a\":1}\n", "no JSON": "hello\n", "newer": `{"session":{"version":99,"id":"x","began":"2026-01-02T15:04:05Z"}}` + "\n",
	} {
		path := filepath.Join(dir, name+".jsonl")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, _, err := session.Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := session.List(dir); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
}

// Two writers of one file would mix their messages.
func TestElsewhere(t *testing.T) {
	s, all := begun(t), spoken()
	must(t, s.Message(all[0]))
	other, _ := load(t, s.Path())
	must(t, other.Message(model(mcp.Text("here"))))
	for range 2 {
		if err := s.Message(model(mcp.Text("there"))); !errors.Is(err, session.ErrElsewhere) {
			t.Errorf("got %v", err)
		}
	}
	must(t, other.Message(user(mcp.Text("go on"))))
	third, _ := load(t, s.Path())
	must(t, other.Message(model(mcp.Text("I do"))))
	if err := third.Message(model(mcp.Text("me too"))); !errors.Is(err, session.ErrElsewhere) {
		t.Errorf("got %v", err)
	}
}

func TestList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sessions")
	if all, err := session.List(dir); err != nil || all != nil {
		t.Errorf("got %v, %v", all, err)
	}
	for i, id := range []string{"20260101-000000-aaaa", "20260102-000000-bbbb", "20260103-000000-cbbb"} {
		s := session.New(dir, session.Header{ID: id, Folder: map[bool]string{true: "/a", false: "/b"}[i == 0], Model: "m"})
		must(t, s.Message(user(mcp.Text("words of "+id))))
		must(t, s.Close())
		at := time.Unix(int64(1000-i), 0)
		must(t, os.Chtimes(s.Path(), at, at))
	}
	all, err := session.List(dir)
	must(t, err)
	if len(all) != 3 || all[0].ID != "20260101-000000-aaaa" || all[2].Words != "words of 20260103-000000-cbbb" || !all[1].Changed.Equal(time.Unix(999, 0)) {
		t.Errorf("got %+v", all)
	}
	for _, test := range []struct{ id, found, fails string }{
		{"20260102-000000-bbbb", "bbbb", ""}, {"aaaa", "aaaa", ""}, {"20260103", "cbbb", ""}, {"bbb", "", "2 sessions"}, {"x", "", "no session x"}, {"", "", "no session"}, {"../x", "", "no session"},
	} {
		s, err := session.Find(dir, test.id)
		if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) || !strings.HasSuffix(s.ID, test.found) {
			t.Errorf("%s: got %s, %v", test.id, s.ID, err)
		}
	}
	for folder, want := range map[string]string{"/b": "20260102-000000-bbbb", "": "20260101-000000-aaaa", "/c": ""} {
		if s, ok, err := session.Latest(dir, folder, nil); err != nil || ok != (want != "") || s.ID != want {
			t.Errorf("%s: got %s, %v, %v", folder, s.ID, ok, err)
		}
	}
}
