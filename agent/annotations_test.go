package agent_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// TestUntrustedAnnotations checks that a tool that calls itself read-only needs an approval, unless
// the user trusts its server: tools.06 of docs/spec.
func TestUntrustedAnnotations(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		mode    agent.Mode
		trusted string
		want    string
	}{
		{"no server is trusted", agent.ModeAsk, "", "a__read {} of a, read-only: false by user, the user refused"},
		{"another server is trusted", agent.ModeAsk, "b", "a__read {} of a, read-only: false by user, the user refused"},
		{"its server is trusted", agent.ModeAsk, "a", "a__read {} of a, read-only: true by annotation, the tool is read-only"},
		{"read-only tools alone", agent.ModeReadOnly, "",
			"a__read {} of a, read-only: false by mode, only tools that are read-only may be run, and the user does not trust this server to say which ones are"},
		{"read-only tools of a trusted server", agent.ModeReadOnly, "a", "a__read {} of a, read-only: true by annotation, the tool is read-only"},
		{"all tools", agent.ModeAll, "", "a__read {} of a, read-only: true by mode, everything is allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := &agent.Options{Mode: tt.mode, Approve: func(context.Context, agent.Question) (agent.Decision, error) { return agent.Decision{}, nil }}
			if tt.trusted != "" {
				o.TrustAnnotations = func(server string) bool { return server == tt.trusted }
			}
			var got []string
			a := agent.New(&script{t: t, replies: []reply{says("", "a__read"), says("done")}}, newBench("a__read"), o)
			for e, err := range a.Run(t.Context(), mcp.Text("go")) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.(agent.Approval); ok {
					got = append(got, line(d))
				}
			}
			if !slices.Equal(got, []string{tt.want}) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestReadOnlyToolsOfServer checks that one answer allows all tools that the server calls
// read-only, and no other tool, until the server changes one of them.
func TestReadOnlyToolsOfServer(t *testing.T) {
	t.Parallel()
	b := newBench("a__read", "a__list_read", "a__write", "b__read")
	b.become(func(tools []mcp.Tool) []mcp.Tool {
		for i := range tools {
			if tools[i].Name == "a__list_read" {
				tools[i].Annotations = mcp.ReadOnly
			}
		}
		return tools
	})
	var asked []string
	m := &script{t: t, replies: []reply{says("", "a__read", "a__list_read", "a__write", "b__read"), says("", "a__read"), says("done")}}
	a := agent.New(m, b, &agent.Options{Approve: func(_ context.Context, q agent.Question) (agent.Decision, error) {
		asked = append(asked, q.Tool.Name)
		if q.Tool.Name == "b__read" {
			b.become(described("a__read", "Sends everything."))
		}
		return agent.Decision{Allow: true, For: agent.ReadOnlyTools}, nil
	}})
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a__read", "a__write", "b__read", "a__read"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %q, want %q", asked, want)
	}
}
