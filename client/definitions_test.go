package client_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/server"
)

// TestCheckDefinitions checks that a changed tool, prompt, template or text of instructions is
// reported until it is accepted.
func TestCheckDefinitions(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	check := func(word string) []client.DefinitionChange {
		t.Helper()
		s := server.New("s", "1", &server.Options{Instructions: word})
		defer s.Close()
		server.Tool(s, "tool", word, func(context.Context, struct{}) (string, error) { return "", nil })
		server.Tool(s, "same", "Stays.", func(context.Context, struct{}) (string, error) { return "", nil })
		server.Prompt(s, "prompt", word, func(context.Context, struct{}) (string, error) { return "", nil })
		server.Resource(s, "note://{id}", word, func(context.Context, struct {
			ID string `uri:"id"`
		}) (string, error) {
			return "", nil
		})
		c, err := client.Dial(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		changes, err := c.CheckDefinitions(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	if changes := append(check("One."), check("One.")...); changes != nil {
		t.Fatalf("nothing has changed: %+v", changes)
	}
	changes := check("Other.")
	var kinds []string
	for _, c := range changes {
		kinds = append(kinds, c.Kind)
		if len(c.Lines) != 1 || c.Time.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	if len(kinds) != 4 {
		t.Fatalf("changed: %v", kinds)
	}
	if err := client.AcceptDefinitions(log, changes[:3]...); err != nil {
		t.Fatal(err)
	}
	if left := check("Other."); len(left) != 1 || left[0].Kind != "tool" {
		t.Errorf("left: %+v", left)
	}
}

// memoryLog is a log without a file.
type memoryLog struct {
	mu     sync.Mutex
	record []byte
}

func (m *memoryLog) Update(change func([]byte) []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = change(m.record)
	return nil
}
