package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/session"
	"github.com/dowel-mcp/dowel/mcp"
)

// Without an ID, --resume leaves out the runs of scripts, unless a user has continued them, and the
// conversations that another dowel has open, of which it warns.
func TestFindResumed(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	save := func(id string, hours int, h session.Header, continued bool) {
		t.Helper()
		h.ID, h.Folder = id, "/work"
		s := session.New(factory.SessionsDir(), h)
		err := s.Message(agent.Message{Role: mcp.RoleUser, Content: []mcp.Content{mcp.Text("hello")}})
		if err == nil && continued {
			err = s.Continued("dowel chat")
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(s.Path(), at, at); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(word, want, says string) {
		t.Helper()
		said := ""
		s, err := findResumed(word, "/work", func(format string, args ...any) { said += fmt.Sprintf(format, args...) })
		if err != nil {
			said += err.Error()
		}
		if s.ID != want && err == nil || (err != nil) != (want == "") || !strings.Contains(said, says) || says == "" && said != "" {
			t.Errorf("--resume=%s: %s, %q, want %s, %q", word, s.ID, said, want, says)
		}
	}
	expect(latestSession, "", "no saved conversation in /work")
	save("script", 1, session.Header{Program: "dowel run", Scripted: true}, false)
	expect(latestSession, "", "continues with --resume=script")
	expect("script", "script", "")
	save("open", 2, session.Header{}, false)
	held, _, err := session.Load(session.PathOf(factory.SessionsDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	held.Hold()
	expect(latestSession, "", "open, the last conversation of this folder, is open in another dowel")
	expect("open", "open", "")
	save("continued", 3, session.Header{Program: "dowel run", Scripted: true}, true)
	save("run", 4, session.Header{Program: "dowel run"}, false)
	expect(latestSession, "continued", "continuing the one before it")
	held.Close()
	expect(latestSession, "open", "")
	if err := os.Remove(filepath.Join(factory.SessionsDir(), "open.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(factory.SessionsDir(), "continued.jsonl")); err != nil {
		t.Fatal(err)
	}
	expect(latestSession, "run", "")
}
