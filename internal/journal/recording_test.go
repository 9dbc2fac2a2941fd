package journal_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/journal"
)

// A recording has everything until the recorder is closed, and only the user can read it.
func TestSave(t *testing.T) {
	t.Parallel()
	file, err := journal.CreateRecording(t.TempDir() + "/new")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := journal.New(journal.Options{})
	done := make(chan error, 1)
	go func() { done <- r.Save(file, "1", journal.MaxRecording) }()
	c := r.ClientConn()
	c.AddFrame(received, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), nil)
	c.AddFrame(received, []byte("no message \xff"), nil)
	r.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		l, err := journal.ParseLine(line, i+1)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, l.K+l.Kind)
	}
	if got := strings.Join(kinds, " "); got != "boot framerequest op framestray" {
		t.Errorf("the recording has %s", got)
	}
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestSaveEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	file, err := journal.CreateRecording(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := journal.New(journal.Options{})
	defer r.Close()
	if err := r.Save(file, "1", 10); err == nil || !strings.Contains(err.Error(), "has reached") {
		t.Errorf("got %v", err)
	}
}
