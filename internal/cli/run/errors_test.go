package run

import (
	"testing"

	"github.com/dowel-mcp/dowel/agent"
)

func TestApprovalAdvice(t *testing.T) {
	const all = "allow all tools with --approve all"
	for _, test := range []struct {
		e    errApproval
		want string
	}{
		{errApproval{"evil__*", agent.Destructive, agent.ModeReadOnly, ""}, all},
		{errApproval{"kv__set", agent.Destructive, agent.ModeReadOnly, "kv.set"}, all + ", or this one for good with dowel trust --tool kv.set"},
		{errApproval{"kv__set", agent.Destructive, agent.ModeNone, "kv.set"}, all},
		{errApproval{"kv__get", agent.ReadOnly, agent.ModeNone, "kv.get"}, "allow it with --approve read-only"},
	} {
		if got := test.e.Advice(); got != test.want {
			t.Errorf("%+v: got %s", test.e, got)
		}
	}
}
