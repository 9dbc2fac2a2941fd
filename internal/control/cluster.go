package control

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/replica"
)

// Cluster is the state of the cluster whose replica the daemon is.
type Cluster struct{ replica.State }

// Summary describes the cluster in one line.
func (c *Cluster) Summary() string {
	if !c.Connected {
		return fmt.Sprintf("The cluster %s cannot be reached: %s. Calls that need no shared state go on, others fail", c.Name, c.Problem)
	}
	return fmt.Sprintf("One of %d replicas of the cluster %s at %s; its keys: %s", c.Replicas, c.Name, c.Server, c.Keys)
}

// minPayload is the size that messages of a cluster should be able to have: the default of the
// largest request body.
const minPayload = 4 << 20

// Warnings lists what makes the cluster weaker than it looks.
func (c *Cluster) Warnings() (all []string) {
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
	return all
}
