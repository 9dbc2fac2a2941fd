package cluster

import (
	"log/slog"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/natstest"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/tasks"
)

// A process that was stopped until its lease had ended renews it before it begins or changes a
// task: until then the other replicas take it for gone.
func TestTaskNeedsLease(t *testing.T) {
	t.Parallel()
	url := natstest.Start(t, nil).ClientURL()
	var all [2]*Cluster
	for i := range all {
		c, err := Open(t.Context(), Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		all[i] = c
	}
	stopped, other := all[0], all[1]
	loseLease := func() {
		other.mu.Lock()
		other.followedSince, other.members[other.id] = time.Now().Add(-replica.LeaseLife), member{seen: time.Now()}
		delete(other.members, stopped.id)
		other.mu.Unlock()
		stopped.mu.Lock()
		stopped.renewed = time.Now().Add(-replica.LeaseLife)
		stopped.mu.Unlock()
		if err := stopped.state.Purge(t.Context(), memberPrefix+stopped.id); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	r := &tasks.Record{ID: "AAAA", Owner: "ann", Tool: "t", Status: tasks.Working, Runner: stopped.id, Created: now, Updated: now, TTL: time.Hour}
	if err := stopped.Tasks().Prepare(); err != nil {
		t.Fatal(err)
	}
	loseLease()
	if err := stopped.Tasks().Create(t.Context(), r, 10); err != nil {
		t.Fatal(err)
	}
	if other.isGoneMember(stopped.id) {
		t.Error("the process that has begun a task is gone")
	}
	loseLease()
	if err := stopped.Tasks().Replace(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if other.isGoneMember(stopped.id) {
		t.Error("the process that has changed a task is gone")
	}
	polltest.Until(t, "a process without a lease is gone", func() bool { // it may have been renewed meanwhile
		loseLease()
		return other.isGoneMember(stopped.id)
	})
}
