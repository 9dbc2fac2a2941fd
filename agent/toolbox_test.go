package agent_test

import (
	"context"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/server"
)

// A server without tools has an empty list, and is no failure.
func TestToolboxWithoutTools(t *testing.T) {
	t.Parallel()
	s := server.New("s", "1", nil)
	server.Prompt(s, "greet", "Greets.", func(context.Context, struct{}) (string, error) { return "hello", nil })
	b, err := agent.Dial(t.Context(), s, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if tools, err := b.List(t.Context()); err != nil || len(tools) > 0 {
		t.Errorf("%v, %v", tools, err)
	}
}
