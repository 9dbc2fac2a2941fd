package gateway_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/server"
)

type remembering struct{ sync.Map }

func (c *remembering) Load(name, fingerprint string) ([]byte, bool) {
	raw, ok := c.Map.Load(name + fingerprint)
	if !ok {
		return nil, false
	}
	return raw.([]byte), true
}

func (c *remembering) Save(name, fingerprint string, raw []byte) { c.Store(name+fingerprint, raw) }

// The instructions of an upstream are included before it is started, if an earlier run has saved
// them.
func TestInstructionsOfUpstreamsThatAreNotStarted(t *testing.T) {
	cache := &remembering{}
	s := server.New("s", "1", &server.Options{Instructions: "Ask twice."})
	defer s.Close()
	for _, status := range []hub.Status{hub.Ready, hub.Stopped} {
		h := hubOf(t, hub.Options{Cache: cache}, hub.Definition{Name: "lazy", Target: s, Fingerprint: "1", Policy: hub.Policy{Lazy: true}})
		settle(t, h)
		if got := h.Upstream("lazy").State(); got.Status != status {
			t.Fatalf("it is %+v", got)
		}
		c := dial(t, gatewayOf(t, h, gateway.Options{}), client.Options{})
		if got := c.Server().Instructions; !strings.Contains(got, "# lazy\n\nAsk twice.") {
			t.Errorf("%v: %q", status, got)
		}
	}
}
