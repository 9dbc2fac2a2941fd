package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/replica"
)

// Doctor warns of each weakness of a cluster by itself, and says what it cannot see.
func TestClusterWarnings(t *testing.T) {
	t.Parallel()
	const (
		oneReplica = "the only replica"
		oneCopy    = "one copy of everything"
		small      = "little room"
		payload    = "max_payload of the NATS server is 1048576 bytes"
		lazy       = "before it is on the disk"
		unseen     = "does not tell"
	)
	for _, c := range []struct {
		name     string
		change   func(*control.Cluster)
		sync     replica.Sync
		warnings []string
		notes    []string
	}{
		{"nothing", func(*control.Cluster) {}, replica.SyncAlways, nil, nil},
		{"one replica", func(c *control.Cluster) { c.Replicas = 1 }, replica.SyncAlways, []string{oneReplica}, nil},
		{"one copy", func(c *control.Cluster) { c.Copies = 1 }, replica.SyncAlways, []string{oneCopy}, nil},
		{"small", func(c *control.Cluster) { c.IsSmall = true }, replica.SyncAlways, []string{small}, nil},
		{"payload", func(c *control.Cluster) { c.Payload = 1 << 20 }, replica.SyncAlways, []string{payload}, nil},
		{"lazy sync", func(*control.Cluster) {}, replica.SyncLazy, []string{lazy}, nil},
		{"sync unseen", func(*control.Cluster) {}, replica.SyncUnknown, nil, []string{unseen}},
		{"all", func(c *control.Cluster) { c.Replicas, c.Copies, c.IsSmall, c.Payload = 1, 1, true, 1<<20 }, replica.SyncLazy, []string{oneReplica, oneCopy, small, payload, lazy}, nil},
		{"unreachable", func(c *control.Cluster) { c.Connected, c.Server = false, "" }, replica.SyncUnknown, []string{"start the NATS server again"}, nil},
		{"no store", func(c *control.Cluster) { c.Connected = false }, replica.SyncUnknown, []string{"look at the log of the NATS server"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := &control.Cluster{State: replica.State{Name: "dowel", Server: "nats://a:4222", Connected: true, Replicas: 3, Copies: 3, Payload: 4 << 20}}
			c.change(cluster)
			if got := cluster.Warnings(c.sync); !slices.EqualFunc(got, c.warnings, strings.Contains) {
				t.Errorf("the warnings are %q, want %q", got, c.warnings)
			}
			notes := cluster.Notes(c.sync)
			if !slices.EqualFunc(notes, c.notes, strings.Contains) {
				t.Errorf("the notes are %q, want %q", notes, c.notes)
			}
			for _, text := range append(notes, cluster.Warnings(c.sync)...) {
				if (strings.Contains(text, lazy) || strings.Contains(text, unseen)) && !strings.Contains(text, "sync_interval: always") {
					t.Errorf("%q does not say what to set", text)
				}
			}
		})
	}
}

// A client of the control socket asks how NATS writes to the disk.
func TestClusterSync(t *testing.T) {
	t.Parallel()
	client, _, _ := running(t)
	if got, err := client.ClusterSync(t.Context()); got != replica.SyncLazy || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
