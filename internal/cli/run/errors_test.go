package run

import (
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/control"
)

func TestApprovalAdvice(t *testing.T) {
	const all = "allow all tools with --approve all"
	for _, test := range []struct {
		e    errApproval
		want string
	}{
		{errApproval{tool: "evil__*", effect: agent.Destructive, mode: agent.ModeReadOnly, trust: ""}, all},
		{errApproval{tool: "kv__set", effect: agent.Destructive, mode: agent.ModeReadOnly, trust: "kv.set", argument: "kv.set"},
			"allow this tool for this run with --allow kv.set, or for good with dowel trust --tool kv.set, or all tools with --approve all"},
		{errApproval{tool: "x__set", effect: agent.Destructive, mode: agent.ModeReadOnly, argument: "x.set"},
			"allow this tool for this run with --allow x.set, or all tools with --approve all"},
		{errApproval{tool: "kv__set", effect: agent.Destructive, mode: agent.ModeNone, trust: "kv.set", argument: "kv.set"}, all},
		{errApproval{tool: "kv__get", effect: agent.ReadOnly, mode: agent.ModeNone, trust: "kv.get"}, "allow it with --approve read-only"},
		{errApproval{tool: "kv__get", server: "kv", effect: agent.ReadOnly, mode: agent.ModeReadOnly, trust: "kv.get"},
			"if you trust kv to say which of its tools are read-only, allow these for good with dowel trust --annotations kv, or for this run with --trust-annotations"},
		{errApproval{tool: "x__get", server: "x", effect: agent.ReadOnly, mode: agent.ModeReadOnly},
			"if you trust its server to say which of its tools are read-only, allow these for this run with --trust-annotations"},
		{errApproval{tool: "kv__set", mode: agent.ModeReadOnly, trust: "kv.set", change: &control.Changed{}}, "look at the change, and allow the tool as it is now with dowel trust --tool kv.set"},
	} {
		if got := test.e.Advice(); got != test.want {
			t.Errorf("%+v: got %s", test.e, got)
		}
	}
}
