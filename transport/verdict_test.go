package transport_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

func TestVerdicts(t *testing.T) {
	var v transport.Verdicts
	v.Remember("", mcp.Revision20251125)
	v.Remember("a", mcp.Revision20251125)
	v.Remember("b", mcp.LatestRevision)
	v.Remember("b", "")
	for endpoint, want := range map[string]mcp.Revision{"": "", "a": mcp.Revision20251125, "b": "", "c": ""} {
		if got := v.Lookup(endpoint); got != want {
			t.Errorf("%q: %q", endpoint, got)
		}
	}
}

func TestNilVerdictsAreShared(t *testing.T) {
	var one, other *transport.Verdicts
	one.Remember("shared by the process", mcp.LatestRevision)
	if got := other.Lookup("shared by the process"); got != mcp.LatestRevision {
		t.Errorf("got %q", got)
	}
}
