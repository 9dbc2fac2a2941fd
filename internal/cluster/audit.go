package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// AuditLog passes lines of the audit log to the other replicas. Each replica writes its own lines first,
// so no call waits for the cluster. Lines wait while it cannot be reached.
type AuditLog struct {
	cluster *Cluster
	wake    chan struct{} // has room for one

	mu      sync.Mutex // guards the rest
	waiting [][]byte
	bytes   int  // of waiting
	lost    int  // lines without room
	closed  bool // nothing is sent any more
}

const (
	auditAge      = 7 * 24 * time.Hour
	maxAuditBytes = 64 << 20
	// maxWaitingLines and maxWaitingBytes bound the lines that wait for the cluster.
	maxWaitingLines = 10_000
	maxWaitingBytes = 16 << 20
	// maxBatchLines and maxBatchBytes bound the lines that are sent before the first is acknowledged.
	maxBatchLines = 256
	maxBatchBytes = 1 << 20
	// flushLimit bounds how long Close waits for the lines that are not sent yet, and flushPause is the time
	// between two tries then.
	flushLimit = 10 * time.Second
	flushPause = 100 * time.Millisecond
	// senderField names the replica that a line comes from.
	senderField = "Dowel-Replica"
)

// ShareAudit joins the audit log of the replicas until the cluster is closed. use gets each new line of
// another replica, with the name of that, one at a time.
func (c *Cluster) ShareAudit(ctx context.Context, use func(replica string, line []byte)) (*AuditLog, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	stream, err := c.openStream(ctx, jetstream.StreamConfig{
		Name: c.streamName("audit"), Subjects: []string{c.subject("audit")}, Description: "audit log", Discard: jetstream.DiscardOld,
		MaxAge: auditAge, MaxBytes: maxAuditBytes,
	})
	if err != nil {
		return nil, c.explain(err)
	}
	consumer, err := stream.OrderedConsumer(c.ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		return nil, c.explain(err)
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		if from := m.Headers().Get(senderField); from != c.id {
			use(from, m.Data())
		}
	})
	if err != nil {
		return nil, c.explain(err)
	}
	a := &AuditLog{cluster: c, wake: make(chan struct{}, 1)}
	c.running.Go(func() {
		defer reading.Stop()
		a.sendLines()
	})
	return a, nil
}

// Write implements [io.Writer] for one line. It does not wait for the network.
func (a *AuditLog) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.waiting) >= maxWaitingLines || a.bytes+len(line) > maxWaitingBytes {
		if a.lost++; a.closed {
			a.reportLost()
		}
		return len(line), nil
	}
	a.waiting, a.bytes = append(a.waiting, append([]byte(nil), line...)), a.bytes+len(line)
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// reportLost logs how many lines the other replicas miss since the last report. a.mu is held.
func (a *AuditLog) reportLost() {
	if a.lost == 0 {
		return
	}
	why := "the cluster could not be reached for too long"
	if a.closed {
		why = "this replica ends, and the cluster has not taken them"
	}
	a.cluster.opts.Logger.Warn("other replicas miss lines of the audit log: "+why, "lines", a.lost)
	a.lost = 0
}

// sendLines sends the lines in their order until the cluster is closed, and then for a short time what is
// left.
func (a *AuditLog) sendLines() {
	c := a.cluster
	var batch []*nats.Msg
	for c.ctx.Err() == nil {
		if len(batch) == 0 {
			batch = a.takeBatch()
		}
		if len(batch) == 0 {
			select {
			case <-a.wake:
			case <-c.ctx.Done():
			}
			continue
		}
		if batch = a.sendBatch(batch); len(batch) > 0 {
			_ = timeout.Sleep(c.ctx, replica.LeaseRenewal) // fails if the cluster is closed
		}
	}
	a.flush(batch)
}

// flush sends the lines that wait, and counts the lines that cannot be sent in time as lost.
func (a *AuditLog) flush(batch []*nats.Msg) {
	for end := time.Now().Add(flushLimit); a.cluster.checkConnected() == nil && time.Now().Before(end); {
		if len(batch) == 0 {
			batch = a.takeBatch()
		}
		if len(batch) == 0 {
			break
		}
		if batch = a.sendBatch(batch); len(batch) > 0 {
			time.Sleep(flushPause)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.lost += len(batch) + len(a.waiting)
	a.waiting, a.bytes = nil, 0
	a.reportLost()
}

// takeBatch takes the next lines. Each message has an id, so a line that is sent again is stored once.
func (a *AuditLog) takeBatch() (batch []*nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reportLost()
	for bytes := 0; len(batch) < len(a.waiting) && len(batch) < maxBatchLines; {
		line := a.waiting[len(batch)]
		if bytes += len(line); bytes > maxBatchBytes && len(batch) > 0 {
			break
		}
		m := nats.NewMsg(a.cluster.subject("audit"))
		m.Data = line
		m.Header.Set(senderField, a.cluster.id)
		m.Header.Set(jetstream.MsgIDHeader, rand.Text())
		batch = append(batch, m)
		a.bytes -= len(line)
	}
	if a.waiting = a.waiting[len(batch):]; len(a.waiting) == 0 {
		a.waiting = nil // a long queue needs no memory later
	}
	return batch
}

// sendBatch sends lines, and waits for their acknowledgements. It returns the lines that must be sent again.
// Lines that the cluster does not take at all are logged.
func (a *AuditLog) sendBatch(batch []*nats.Msg) (again []*nats.Msg) {
	c := a.cluster
	if c.checkConnected() != nil {
		return batch
	}
	sent := make([]jetstream.PubAckFuture, len(batch))
	failed := make([]error, len(batch))
	for i, m := range batch {
		sent[i], failed[i] = c.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	}
	refused, why := 0, error(nil)
	for i, m := range batch {
		if failed[i] == nil {
			select { // one of both comes within storeTimeout
			case <-sent[i].Ok():
				continue
			case failed[i] = <-sent[i].Err():
			}
		}
		if err := storeError(failed[i]); errors.Is(err, replica.ErrUnreachable) || isBeingStored(err) {
			again = append(again, m)
		} else {
			refused, why = refused+1, err
		}
	}
	if refused > 0 {
		c.opts.Logger.Warn("lines of the audit log do not reach the other replicas", "lines", refused, "err", why)
	}
	return again
}
