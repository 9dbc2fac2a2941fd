package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// A session is held until it is closed, and is not removed meanwhile.
func TestHold(t *testing.T) {
	t.Parallel()
	s := begun(t)
	must(t, s.Message(user(mcp.Text("hello"))))
	if session.IsHeld(s.Path()) {
		t.Error("it is held before Hold")
	}
	s.Hold()
	s.Hold() // again
	other, _ := load(t, s.Path())
	other.Hold() // without effect
	must(t, other.Close())
	all, err := session.List(filepath.Dir(s.Path()))
	must(t, err)
	if !session.IsHeld(s.Path()) || len(all) != 1 {
		t.Errorf("it is not held: %v", all)
	}
	if err := session.Remove(all[0]); err == nil || !strings.Contains(err.Error(), "is open in another dowel") {
		t.Errorf("a held session is removed: %v", err)
	}
	must(t, s.Close())
	if session.IsHeld(s.Path()) {
		t.Error("it is held after Close")
	}
	must(t, session.Remove(all[0]))
	if left, err := os.ReadDir(filepath.Dir(s.Path())); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// writeRun writes the session of a run of hours ago.
func writeRun(t *testing.T, folder, id string, hours int, change func(*session.Session)) {
	t.Helper()
	s := session.New(folder, session.Header{ID: id, Program: "dowel run"})
	must(t, s.Message(user(mcp.Text("do it"))))
	change(s)
	must(t, s.Close())
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	must(t, os.Chtimes(s.Path(), at, at))
}

// The oldest runs are removed, with their results. A run stays if it is open, has an open task or
// was continued by another program. The other sessions do not count.
func TestRemoveOldest(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "sessions")
	nothing := func(*session.Session) {}
	for i, id := range []string{"new-1", "new-2", "old-1", "old-2"} {
		writeRun(t, folder, id, i, nothing)
	}
	must(t, os.MkdirAll(filepath.Join(folder, "old-1.results"), 0o700))
	must(t, os.WriteFile(filepath.Join(folder, "old-1.results", "1"), []byte("long"), 0o600))
	writeRun(t, folder, "continued", 10, func(s *session.Session) { must(t, s.Continued("dowel chat")) })
	writeRun(t, folder, "waits", 11, func(s *session.Session) {
		must(t, s.Message(model(call("1"))))
		text := mcp.Text("it goes on")
		text.Meta = mcp.Meta{"dowel/task": map[string]any{"id": "x", "call": "1", "tool": "a__b"}}
		must(t, s.Result(mcp.ToolResultContent{ToolUseID: "1", Content: []mcp.Content{text}}))
	})
	writeRun(t, folder, "open", 12, nothing)
	open, _ := load(t, filepath.Join(folder, "open.jsonl"))
	open.Hold()
	chat := session.New(folder, session.Header{ID: "chat"})
	must(t, chat.Message(user(mcp.Text("hello"))))
	must(t, os.Chtimes(chat.Path(), time.Unix(1, 0), time.Unix(1, 0)))

	expect := func(b session.Bound, want string) {
		t.Helper()
		must(t, session.RemoveOldest(folder, "dowel run", b))
		all, err := session.List(folder)
		must(t, err)
		var left []string
		for _, s := range all {
			left = append(left, s.ID)
		}
		if got := strings.Join(left, " "); got != want {
			t.Errorf("%+v: left are %s, want %s", b, got, want)
		}
	}
	expect(session.Bound{}, "new-1 new-2 old-1 old-2 continued waits open chat")
	expect(session.Bound{Count: 2}, "new-1 new-2 continued waits open chat")
	if _, err := os.Stat(filepath.Join(folder, "old-1.results")); err == nil {
		t.Error("the results of a removed run are left")
	}
	expect(session.Bound{Bytes: 1}, "new-1 continued waits open chat")
}
