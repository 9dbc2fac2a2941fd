package cluster_test

import (
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// After an outage of the NATS server all leases have ended. A replica that comes back later than
// another is not gone for that one. A replica that does not come back is gone.
func TestReplicasAfterOutage(t *testing.T) {
	t.Parallel()
	start := natstest.Restartable(t)
	nats := start()
	between, address := startRelay(t, nats.Addr().String())
	one, two := open(t, address), open(t, nats.ClientURL())
	first, second := one.Tasks(), two.Tasks()
	polltest.Until(t, "the replicas know each other", func() bool { return one.State().Replicas == 2 && two.State().Replicas == 2 })
	natstest.Stop(nats)
	polltest.Until(t, "the loss is noticed", func() bool { return !one.State().Connected && !two.State().Connected })
	between.cut(true)
	time.Sleep(replica.LeaseLife + time.Second) // the leases end
	start()
	polltest.Until(t, "a replica is back", func() bool { return two.State().Connected })
	for end := time.Now().Add(replica.LeaseLife / 2); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if second.IsGone(first.Runner()) {
			t.Fatal("a replica that has had no time to come back counts as gone")
		}
	}
	between.cut(false)
	polltest.Until(t, "the other replica is back", func() bool { return one.State().Connected })
	for end := time.Now().Add(2 * replica.LeaseLife); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if second.IsGone(first.Runner()) || first.IsGone(second.Runner()) {
			t.Fatal("a replica that is back counts as gone")
		}
	}
	between.cut(true)
	polltest.Until(t, "the replica that was cut off is gone", func() bool { return second.IsGone(first.Runner()) })
	polltest.Until(t, "it is forgotten", func() bool { return two.State().Replicas == 1 })
}

// A replica that has ended in order is gone at once.
func TestReplicaThatHasEnded(t *testing.T) {
	t.Parallel()
	one, two := openTwo(t)
	polltest.Until(t, "the replicas know each other", func() bool { return two.State().Replicas == 2 })
	name := one.Tasks().Runner()
	one.Close()
	if !two.Tasks().IsGone(name) {
		t.Error("it counts as there")
	}
	polltest.Until(t, "it is forgotten", func() bool { return two.State().Replicas == 1 })
}
