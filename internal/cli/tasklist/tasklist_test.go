package tasklist_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/internal/cli/tasklist"
)

func open(t *testing.T) (tasklist.File, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "dowel")
	f, err := tasklist.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return f, filepath.Join(folder, "tasks.json")
}

// Processes that add tasks at once lose none, and no two tasks have the same name.
func TestAddAtOnce(t *testing.T) {
	f, _ := open(t)
	var wg sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			if _, err := f.Add(tasklist.Entry{Server: "s", Tool: "t", ID: id}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, name := range []string{"1", "2", "3", "4"} {
		if e, err := f.Find(name); err != nil || e.Server != "s" || e.ID == "" || e.Started.IsZero() {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	last, err := f.Find("4")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Forget("x", last.ID); err != nil {
		t.Error(err)
	}
	if all, err := f.Read(); len(all) != 3 || err != nil {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := f.Find("4"); err == nil || !strings.Contains(err.Error(), `no task called "4"`) {
		t.Error(err)
	}
}

// A file that is not a list stays as it is.
func TestBrokenFile(t *testing.T) {
	f, path := open(t)
	if _, err := f.Add(tasklist.Entry{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := f.Add(tasklist.Entry{ID: "b"})
	if err == nil || !strings.Contains(err.Error(), "is not a list of tasks") {
		t.Error(err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "{" {
		t.Errorf("the file is now %q", raw)
	}
	if _, err := tasklist.Open(""); err == nil {
		t.Error("no folder is accepted")
	}
}

// Tasks of conversations have names, are forgotten when no conversation waits for them any more,
// and stay when a conversation drops them.
func TestConversations(t *testing.T) {
	f, path := open(t)
	expect := func(want string) {
		t.Helper()
		all, err := f.Read()
		var got []string
		for _, e := range all {
			got = append(got, e.Name+e.ID+"("+strings.Join(e.Conversations, " ")+")")
		}
		if text := strings.Join(got, " "); text != want || err != nil {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
	set := func(conversation string, ids ...string) {
		t.Helper()
		var tasks []tasklist.Entry
		for _, id := range ids {
			tasks = append(tasks, tasklist.Entry{Server: "s", Tool: "t", ID: id})
		}
		if err := f.SetOpen(conversation, tasks); err != nil {
			t.Error(err)
		}
	}
	set("first")
	if _, err := os.Stat(path); err == nil {
		t.Error("a file is written for no task")
	}
	if _, err := f.Add(tasklist.Entry{ID: "called"}); err != nil {
		t.Fatal(err)
	}
	set("first", "a", "b")
	set("fork", "a", "b")
	expect("1called() 2a(first fork) 3b(first fork)")
	set("first", "b")
	set("fork", "b", "c")
	expect("1called() 3b(first fork) 4c(fork)")
	if err := f.Release("fork", "c", "called"); err != nil {
		t.Error(err)
	}
	set("fork")
	set("first")
	expect("1called() 4c()")
}
