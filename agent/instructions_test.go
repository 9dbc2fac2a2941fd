package agent_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// Instructions are read before each reply. An empty text adds nothing.
func TestInstructions(t *testing.T) {
	m := &script{t: t, replies: []reply{says("one"), says("two")}}
	text := ""
	a := newTrustingAgent(m, nil, &agent.Options{System: "Be brief.", Instructions: func() string { return text }})
	for _, want := range []string{"Be brief.", "Be brief.\n\nBe gentle."} {
		if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Fatal(err)
		}
		if got := m.conversations[len(m.conversations)-1].System; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		text = "Be gentle."
	}
}
