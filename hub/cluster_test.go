package hub_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/replicatest"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
)

// brokenServer is a server that cannot be dialed until isMended is set. A dial takes a second.
type brokenServer struct {
	transport.Dialer
	isMended atomic.Bool
	dials    atomic.Int64
}

func (b *brokenServer) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	b.dials.Add(1)
	if b.isMended.Load() {
		return b.Dialer.Dial(ctx, in, o)
	}
	time.Sleep(time.Second)
	return nil, errors.New("it is broken")
}

func emptyServer() *server.Server { return server.New("up", "1", &server.Options{Logger: quiet}) }

// hubReplica is a hub whose only server, up, runs once for all replicas.
func hubReplica(t *testing.T, n *replicatest.Net, target transport.Dialer) (h *hub.Hub, pool *sharedserver.Pool) {
	t.Helper()
	h = hub.New(&hub.Options{Logger: quiet})
	pool, err := sharedserver.Join(sharedserver.Options{Network: n, Values: n, Logger: quiet,
		Serve: func(string) (mcp.Handler, error) {
			switch state := h.Upstream("up").State(); state.Status {
			case hub.Ready:
				return emptyServer(), nil
			case hub.Starting:
				return nil, sharedserver.ErrStarting
			default:
				return nil, &hub.DownError{Upstream: "up", State: state}
			}
		},
		Redial: func(string) bool { return hublink.Redial(h.Upstream("up"), "the test wants it") },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Apply([]hub.Definition{{Name: "up", Target: pool.Target("up", target)}}, "the test begins")
	return h, pool
}

// The replicas of a broken server wait longer and longer between their attempts. When it is mended,
// all use it soon.
func TestBackoffOfReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, broken := replicatest.New(), &brokenServer{Dialer: memory.Dialer(emptyServer(), transport.ServerOptions{})}
		var hubs []*hub.Hub
		var pools []*sharedserver.Pool
		for range 3 {
			h, p := hubReplica(t, n, broken)
			hubs, pools = append(hubs, h), append(pools, p)
		}
		time.Sleep(10 * time.Minute)
		first := broken.dials.Load()
		time.Sleep(10 * time.Minute)
		if later := broken.dials.Load() - first; first > 100 || later > 75 { // a replica alone: up to 20 in 10 minutes
			t.Errorf("%d starts in the first 10 minutes, %d in the next", first, later)
		}
		broken.isMended.Store(true)
		time.Sleep(90 * time.Second)
		for i, h := range hubs {
			if s := h.Upstream("up").State(); s.Status != hub.Ready {
				t.Errorf("replica %d: %s, %s", i, s.Status, s.Cause)
			}
		}
		for i := range hubs {
			hubs[i].Close()
			pools[i].Close()
		}
	})
}

// A replica uses a server again soon after it was cut off, however often that has happened: the
// loss of the owner, or of the lease, is no failure of the server.
func TestReplicasAreCutOffOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, up := replicatest.New(), memory.Dialer(emptyServer(), transport.ServerOptions{})
		var hubs []*hub.Hub
		var pools []*sharedserver.Pool
		for range 3 {
			h, p := hubReplica(t, n, up)
			hubs, pools = append(hubs, h), append(pools, p)
		}
		time.Sleep(time.Second)
		for round := range 10 {
			n.SetCut(true)
			time.Sleep(4500 * time.Millisecond) // the others lose the owner, and the owner may lose its lease
			n.SetCut(false)
			time.Sleep(3 * time.Second) // until the lease has ended, and a little more
			for i, h := range hubs {
				if s := h.Upstream("up").State(); s.Status != hub.Ready {
					t.Errorf("round %d, replica %d: %s, %s: %v", round, i, s.Status, s.Cause, s.Err)
				}
			}
		}
		for i := range hubs {
			hubs[i].Close()
			pools[i].Close()
		}
	})
}

// An owner that accepts connections and ends them at once is not dialed without a pause.
func TestOwnerEndsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := replicatest.New()
		var opened atomic.Int64
		refuse, err := n.Receive("servers_host_1_X", func(_ context.Context, message []byte) ([]byte, error) {
			switch {
			case strings.Contains(string(message), `"open"`):
				opened.Add(1)
			case strings.Contains(string(message), `"check"`), strings.Contains(string(message), `"part"`):
				return nil, errors.New("the connection has ended")
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		n.Replace(replica.KeyOf("server", "up"), []byte("servers_host_1_X held"), time.Hour)
		h, pool := hubReplica(t, n, memory.Dialer(emptyServer(), transport.ServerOptions{}))
		time.Sleep(time.Minute)
		if got := opened.Load(); got < 10 || got > 100 {
			t.Errorf("%d connections in a minute", got)
		}
		h.Close()
		pool.Close()
		refuse()
	})
}
