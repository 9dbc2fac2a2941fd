package control

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// Cluster is the state of the cluster whose replica the daemon is.
type Cluster struct{ replica.State }

// Summary describes the cluster in one line.
func (c *Cluster) Summary() string {
	const outage = `Calls that need no shared state go on; others fail, as do those of servers that one replica connects to for all ("sharing": "shared" in an entry avoids that)`
	switch {
	case c.hasNoStore():
		return fmt.Sprintf("The cluster %s cannot be used: the NATS server %s answers, but JetStream stores nothing: %s. %s", c.Name, c.Server, c.Problem, outage)
	case !c.Connected:
		return fmt.Sprintf("The cluster %s cannot be reached: %s. %s", c.Name, c.Problem, outage)
	}
	return fmt.Sprintf("One of %d replicas of the cluster %s at %s; its keys: %s", c.Replicas, c.Name, c.Server, c.Keys)
}

// hasNoStore reports whether the NATS server can be reached and its JetStream cannot.
func (c *Cluster) hasNoStore() bool { return !c.Connected && c.Server != "" }

// minPayload is the size that messages of a cluster should be able to have: the default of the
// largest request body.
const minPayload = 4 << 20

// syncAdvice says how to make NATS sync each write.
const syncAdvice = `"sync_interval: always" in the jetstream block of each NATS server`

// Warnings lists what makes the cluster weaker than it looks. sync is the answer of
// its NATS servers.
func (c *Cluster) Warnings(sync replica.Sync) (all []string) {
	if c.hasNoStore() {
		return []string{c.Summary() + ": look at the log of the NATS server; its disk may be full, or JetStream may be off or without a leader"}
	}
	if !c.Connected {
		return []string{c.Summary() + ": start the NATS server again, or check the network to it"}
	}
	if c.Replicas == 1 {
		all = append(all, "this dowel is the only replica of the cluster: start others with the same --cluster, so that one may fail")
	}
	if c.Copies == 1 {
		all = append(all, "the NATS server keeps one copy of everything: use three servers, so that one may fail")
	}
	if c.IsSmall {
		all = append(all, "the NATS server has little room for the cluster: raise max_file_store or the limit of the account to at least 1 GiB, and enlarge the streams with nats stream edit")
	}
	if c.Payload < minPayload {
		all = append(all, fmt.Sprintf("max_payload of the NATS server is %d bytes: set it to at least %d, so that clients can resume from large messages", c.Payload, minPayload))
	}
	if sync == replica.SyncLazy {
		all = append(all, "NATS acknowledges a write before it is on the disk, so a loss of power may lose what was acknowledged: set "+syncAdvice)
	}
	return all
}

// Notes lists what dowel cannot see of the cluster. sync is the answer of its NATS servers.
func (c *Cluster) Notes(sync replica.Sync) []string {
	if !c.Connected || sync != replica.SyncUnknown {
		return nil
	}
	return []string{"NATS does not tell the account of dowel whether it syncs each write to the disk. Without " + syncAdvice +
		", a loss of power may lose what was acknowledged"}
}
