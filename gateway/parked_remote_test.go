package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
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

// slowNet is a network on which answers are late or messages are lost, except outcomes.
type slowNet struct {
	*replicatest.Net
	late atomic.Int32 // the answers to so many messages, more than the sender waits
	lost atomic.Int32 // so many messages, after those

	cancels atomic.Int32 // the messages that the client has gone
}

// Send implements [replica.Network].
func (n *slowNet) Send(ctx context.Context, instance string, message []byte) ([]byte, error) {
	if strings.Contains(string(message), `"kind":"cancel"`) {
		n.cancels.Add(1)
	}
	isLate, isLost := false, false
	if !strings.Contains(string(message), `"kind":"end"`) {
		isLate = n.late.Add(-1) >= 0
		isLost = !isLate && n.lost.Add(-1) >= 0
	}
	if isLost {
		time.Sleep(time.Second)
		return nil, replica.ErrUnreachable
	}
	answer, err := n.Net.Send(ctx, instance, message)
	if isLate {
		time.Sleep(time.Second)
		return nil, replica.ErrUnreachable
	}
	return answer, err
}

// slowReplicas returns two replicas on a network.
func slowReplicas(t *testing.T) (n *slowNet, replicas [2]*gateway.Gateway) {
	n, keys := &slowNet{Net: replicatest.New()}, new(mcp.Keys)
	replica.Attach(keys, n)
	t.Cleanup(func() { replica.Attach(keys, nil) })
	for i := range replicas {
		h := hubOf(t, hub.Options{}, older("a", new(wires)))
		settle(t, h)
		replicas[i] = gatewayOf(t, h, gateway.Options{Keys: keys})
	}
	return n, replicas
}

// A client may leave before the owner of its call has acknowledged the retry. The owner hears of
// it.
func TestLeaveSlowReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, replicas := slowReplicas(t)
		req := request("ada", `{"name":"a__ask","arguments":{"rest":10}}`)
		asked, state := asks(t, replicas[0], req)
		n.late.Store(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if res, err := replicas[1].ServeMCP(ctx, answered(req, state, asked...)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%+v, %v", res, err)
		}
		if got := n.cancels.Load(); got != 1 {
			t.Errorf("the owner has heard of it %d times", got)
		}
	})
}

// A retry at another replica gets its result although the owner answers late. If the owner never
// gets it, or is silent for long, an error says so soon.
func TestParkedCallOfSlowReplica(t *testing.T) {
	for _, tt := range []struct {
		name, arguments string
		late, lost      int32
		err             string
		most            time.Duration
	}{
		{"late", `{}`, 1, 0, "", 2 * time.Second},
		{"late, and the call takes longer", `{"rest":10}`, 1, 0, "", 10 * time.Second},
		{"late three times", `{"rest":10}`, 3, 0, "", 10 * time.Second},
		{"lost", `{}`, 0, 1, "call again", 2 * time.Second},
		{"silent", `{"rest":60}`, 1, 1000, "cannot be reached", 7 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, replicas := slowReplicas(t)
				req := request("ada", `{"name":"a__ask","arguments":`+tt.arguments+`}`)
				asked, state := asks(t, replicas[0], req)
				n.late.Store(tt.late)
				n.lost.Store(tt.lost)
				began := time.Now()
				res, err := replicas[1].ServeMCP(t.Context(), answered(req, state, asked...))
				if took := time.Since(began); took > tt.most {
					t.Errorf("it took %v", took)
				}
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("%+v, %v", res, err)
					}
				} else if got := text(t, res, err); got != "Ada." {
					t.Error(got)
				}
				n.late.Store(0)
				n.lost.Store(0)
				if tt.lost == 1 { // the call still waits
					res, err := replicas[1].ServeMCP(t.Context(), answered(req, state, asked...))
					if got := text(t, res, err); got != "Ada." {
						t.Error(got)
					}
				}
			})
		})
	}
}
