package gateway_test

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// The keys outlive the process, its parked calls do not. A state of the former process continues no
// call of another client.
func TestParkedCallAfterRestart(t *testing.T) {
	keys := new(mcp.Keys)
	start := func() *gateway.Gateway {
		h := hubOf(t, hub.Options{}, older("a", new(wires)), older("b", new(wires)))
		settle(t, h)
		return gatewayOf(t, h, gateway.Options{Keys: keys})
	}
	ada, eve := request("ada", askOnce), request("eve", askOnce)
	adaKeys, adaState := asks(t, start(), ada)
	again := start()
	eveKeys, eveState := asks(t, again, eve)
	_, err := again.ServeMCP(t.Context(), answered(ada, adaState, adaKeys...))
	if code(err, jsonrpc.CodeInvalidParams) != nil || !strings.Contains(err.Error(), "call again") {
		t.Errorf("a state of the former process: %v", err)
	}
	res, err := again.ServeMCP(t.Context(), answered(eve, eveState, eveKeys...))
	if got := text(t, res, err); got != "Ada." {
		t.Errorf("the result of the other client: %s", got)
	}
}
