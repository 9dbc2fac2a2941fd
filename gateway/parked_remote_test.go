package gateway_test

import (
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	natsserver "github.com/nats-io/nats-server/v2/server"
)

// replicaOf returns a gateway with upstreams of its own, as a replica of a cluster.
func replicaOf(t *testing.T, url string) (*gateway.Gateway, *cluster.Cluster) {
	t.Helper()
	c, err := cluster.Open(t.Context(), cluster.Options{URL: url, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h := hubOf(t, hub.Options{}, older("a", new(wires)), older("b", new(wires)))
	settle(t, h)
	return gatewayOf(t, h, gateway.Options{Keys: c.Keys()}), c
}

// A call that one replica has parked continues when its client repeats it at another.
func TestParkedCallAtAnotherReplica(t *testing.T) {
	url := natstest.Start(t, nil).ClientURL()
	one, _ := replicaOf(t, url)
	two, _ := replicaOf(t, url)
	req := request("ada", askOnce)
	keys, state := asks(t, one, req)
	if _, err := two.ServeMCP(t.Context(), answered(request("eve", askOnce), state, keys...)); code(err, jsonrpc.CodeInvalidParams) != nil {
		t.Errorf("another client's retry: %v", err)
	}
	res, err := two.ServeMCP(t.Context(), answered(req, state, keys...))
	if got := text(t, res, err); got != "Ada." {
		t.Errorf("the result: %s", got)
	}
	if _, err := two.ServeMCP(t.Context(), answered(req, state, keys...)); err == nil || !strings.Contains(err.Error(), "call again") {
		t.Errorf("a second retry: %v", err)
	}
}

// If the replica that has parked a call is gone, the retry fails at once.
func TestParkedCallOfGoneReplica(t *testing.T) {
	url := natstest.Start(t, nil).ClientURL()
	one, c := replicaOf(t, url)
	two, _ := replicaOf(t, url)
	req := request("ada", askOnce)
	keys, state := asks(t, one, req)
	c.Close() // as if the process had been killed, for the others
	_, err := two.ServeMCP(t.Context(), answered(req, state, keys...))
	if code(err, jsonrpc.CodeInternal) != nil || !strings.Contains(err.Error(), "has ended") {
		t.Error(err)
	}
}

// A request or a result that does not fit into a message of the cluster is an error that says why.
func TestParkedCallTooLargeForCluster(t *testing.T) {
	url := natstest.Start(t, func(o *natsserver.Options) { o.MaxPayload = 16 << 10 }).ClientURL()
	one, _ := replicaOf(t, url)
	two, _ := replicaOf(t, url)
	for _, arguments := range []string{`{"long":20000}`, `{"tag":"` + strings.Repeat("x", 20000) + `"}`} {
		req := request("ada", `{"name":"a__ask","arguments":`+arguments+`}`)
		keys, state := asks(t, one, req)
		_, err := two.ServeMCP(t.Context(), answered(req, state, keys...))
		if code(err, jsonrpc.CodeInternal) != nil || !strings.Contains(err.Error(), "max_payload") {
			t.Error(err)
		}
	}
}
