package control

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

// The console allows nothing that it does not show whole: an agent could hide the end of a call.
func TestLongApprovals(t *testing.T) {
	long := func(n int) string { return `{"a":"` + strings.Repeat("x", n) + `"}` }
	for name, tt := range map[string]struct {
		approval Approval
		isWhole  bool
	}{
		"short":          {Approval{Arguments: `{"a":1}`}, true},
		"large":          {Approval{Arguments: long(maxAskForm / 2)}, true},
		"too large":      {Approval{Arguments: long(maxAskForm)}, false},
		"no JSON":        {Approval{Arguments: long(maxAskForm / 2)[1:]}, false},
		"long message":   {Approval{Message: strings.Repeat("x", maxAskText+1)}, false},
		"bounded prompt": {Approval{Message: strings.Repeat("x", maxAskText)}, true},
	} {
		tt.approval.Program = "dowel chat"
		asks, ask := newAsks(t.Context()), newApprovalAsk(&tt.approval)
		asks.openAsk(ask)
		err := asks.Answer(ask.ID, AskAnswer{Action: mcp.ElicitAccept})
		if (err == nil) != tt.isWhole || err != nil && !strings.Contains(err.Error(), "decide in dowel chat") || len(ask.decided) != map[bool]int{true: 1}[tt.isWhole] {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(ask.Approval.Arguments) + len(ask.Message); n > maxAskForm+maxAskText+10 {
			t.Errorf("%s: %d bytes are kept", name, n)
		}
	}
}
