package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats.go"
)

// syncSubject asks all NATS servers for their settings of JetStream. Only the system account of
// NATS answers, or an account that imports this service from it.
const syncSubject = "$SYS.REQ.SERVER.PING.JSZ"

// syncTimeout is the wait for the NATS servers. How many there are is not known.
const syncTimeout = 500 * time.Millisecond

// Sync asks the NATS servers whether they sync each write to the disk. It waits half a second for
// their answers, and returns [replica.SyncUnknown] if none comes.
func (c *Cluster) Sync(ctx context.Context) replica.Sync {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	answers, err := c.conn.SubscribeSync(c.conn.NewInbox())
	if err != nil {
		return replica.SyncUnknown
	}
	defer func() { _ = answers.Unsubscribe() }() // fails only without a connection
	if err := c.conn.PublishRequest(syncSubject, answers.Subject, nil); err != nil {
		return replica.SyncUnknown
	}
	known := replica.SyncUnknown
	for {
		m, err := answers.NextMsgWithContext(ctx)
		if err != nil { // none is left, or nothing listens at the subject
			return known
		}
		switch readSync(m) {
		case replica.SyncLazy:
			return replica.SyncLazy
		case replica.SyncAlways:
			known = replica.SyncAlways
		}
	}
}

// isSyncRefusal reports whether err says that NATS refuses the question of [Cluster.Sync], which
// most accounts may not ask.
func isSyncRefusal(err error) bool {
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), syncSubject)
}

// readSync reads the answer of one server.
func readSync(m *nats.Msg) replica.Sync {
	var answer struct {
		Data *struct {
			Disabled bool `json:"disabled"`
			Config   struct {
				SyncAlways bool `json:"sync_always"`
			} `json:"config"`
		} `json:"data"`
	}
	if json.Unmarshal(m.Data, &answer) != nil || answer.Data == nil || answer.Data.Disabled {
		return replica.SyncUnknown
	}
	if answer.Data.Config.SyncAlways {
		return replica.SyncAlways
	}
	return replica.SyncLazy
}
