package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/nats-io/nats.go/jetstream"
)

// AuditLog passes lines of the audit log to the other replicas. Each replica writes its own lines
// first, so no call waits for the cluster. Lines wait while the cluster cannot be reached or has no
// room.
type AuditLog struct {
	cluster *Cluster
	wake    chan struct{} // has room for one
	most    int           // lines of the next batch; used by sendLines only

	mu       sync.Mutex  // guards the rest
	waiting  []auditLine // until they are stored
	bytes    int         // of waiting
	written  uint64      // number of the newest line, counted from 1
	lost     int         // lines that the other replicas miss, since the last report
	reported time.Time   // when lost lines were reported last
	refusal  error       // of the last batch; nil after one that was stored
	closed   bool        // nothing is sent any more
}

// auditLine is a line of this replica. Its number tells other replicas whether they have it
// already, or miss lines before it.
type auditLine struct {
	number uint64
	text   []byte
}

const (
	auditAge      = 7 * 24 * time.Hour
	maxAuditBytes = 64 << 20
	// maxWaitingLines and maxWaitingBytes bound the lines that wait for the cluster.
	maxWaitingLines = 10_000
	maxWaitingBytes = 16 << 20
	// flushLimit bounds how long Close waits for the lines that are not sent yet, and flushPause is
	// the time between two tries then.
	flushLimit = 10 * time.Second
	flushPause = 100 * time.Millisecond
	// gatherTime is how long lines are gathered after the first one. Without it a busy replica
	// would send a message for each few calls, which took 11 % of its processor time.
	gatherTime = 100 * time.Millisecond
	// lossReportPause is the least time between two reports of lost lines.
	lossReportPause = time.Minute
)

// ShareAudit joins the audit log of the replicas until the cluster is closed. use gets each line
// that another replica writes from now on, with the name of that replica, one at a time.
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
	stop, err := c.readAudit(ctx, stream, use)
	if err != nil {
		return nil, c.explain(err)
	}
	a := &AuditLog{cluster: c, wake: make(chan struct{}, 1), most: maxBatchLines}
	c.running.Go(func() {
		defer stop()
		a.sendLines()
	})
	return a, nil
}

// Write implements [io.Writer] for one line. It does not wait for the network.
func (a *AuditLog) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written++
	if a.closed || len(a.waiting) >= maxWaitingLines || a.bytes+len(line) > maxWaitingBytes {
		if a.lost++; a.closed {
			a.reportLost()
		}
		return len(line), nil
	}
	a.waiting = append(a.waiting, auditLine{a.written, append([]byte(nil), line...)})
	a.bytes += len(line)
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// sendLines sends the lines in their order until the cluster is closed, and then for a short time
// the lines that are left. A batch is one message, and the next one is sent when it is stored, so
// the lines of one replica keep their order at all others.
func (a *AuditLog) sendLines() {
	c := a.cluster
	var batch *auditBatch
	for c.ctx.Err() == nil {
		if batch == nil {
			batch = a.takeBatch()
		}
		if batch == nil {
			a.awaitLines(a.reportLostInTime())
			continue
		}
		if isDone := a.sendBatch(batch); isDone {
			batch = nil
			a.reportLostInTime()
		} else {
			_ = timeout.Sleep(c.ctx, replica.LeaseRenewal) // fails if the cluster is closed
		}
	}
	a.flush(batch)
}

// awaitLines waits for lines, for the end, and for a time to report lost lines if there is one.
func (a *AuditLog) awaitLines(report time.Duration) {
	var due <-chan time.Time
	if report > 0 {
		due = time.After(report)
	}
	select {
	case <-a.wake:
		_ = timeout.Sleep(a.cluster.ctx, gatherTime) // fails if the cluster is closed
	case <-due:
	case <-a.cluster.ctx.Done():
	}
}

// flush sends the lines that wait, and counts the lines that cannot be sent in time as lost.
func (a *AuditLog) flush(batch *auditBatch) {
	for end := time.Now().Add(flushLimit); a.cluster.checkConnected() == nil && time.Now().Before(end); {
		if batch == nil {
			batch = a.takeBatch()
		}
		if batch == nil {
			break
		}
		if isDone := a.sendBatch(batch); isDone {
			batch = nil
		} else {
			time.Sleep(flushPause)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.lost += len(a.waiting)
	a.waiting, a.bytes = nil, 0
	a.reportLost()
}

// dropLines drops the first n lines that wait: they are stored, or never will be.
func (a *AuditLog) dropLines(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.waiting[:n] {
		a.bytes -= len(line.text)
	}
	clear(a.waiting[:n]) // the array lives on
	if a.waiting = a.waiting[n:]; len(a.waiting) == 0 {
		a.waiting = nil // a long queue needs no memory later
	}
}

// reportLostInTime reports lost lines if the last report is old enough. Otherwise it returns the
// time until then, or 0 if no line was lost.
func (a *AuditLog) reportLostInTime() (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lost == 0 {
		return 0
	}
	if wait = lossReportPause - time.Since(a.reported); wait > 0 {
		return wait
	}
	a.reportLost()
	return 0
}

// reportLost logs how many lines the other replicas miss since the last report. a.mu is held.
func (a *AuditLog) reportLost() {
	if a.lost == 0 {
		return
	}
	text, about := "other replicas miss lines of the audit log of this one, because the cluster has not taken them", []any{"lines", a.lost}
	if a.closed {
		text = "this replica ends, and others miss lines of its audit log, because the cluster has not taken them"
	}
	if a.refusal != nil {
		about = append(about, "err", a.refusal)
	}
	a.cluster.opts.Logger.Warn(text, about...)
	a.lost, a.reported = 0, time.Now()
}
