package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// auditReader passes the lines of other replicas on, each once. The stream may have a message
// twice: if the acknowledgement was missing for longer than the stream remembers ids, its sender
// has sent it again.
type auditReader struct {
	own    string // the name of this replica
	use    func(replica string, line []byte)
	logger *slog.Logger

	mu      sync.Mutex // guards the rest, and calls of use
	senders map[string]*auditSender
}

// auditSender is a replica that has sent lines.
type auditSender struct {
	next uint64    // number of the first line that did not come yet
	used time.Time // when the last lines came
}

// maxAuditSenders bounds the replicas that are remembered. Each start of a process is another one.
const maxAuditSenders = 1000

// readAudit passes each line that another replica stores from now on to use, until stop is called.
// ctx bounds the opening.
func (c *Cluster) readAudit(ctx context.Context, stream jetstream.Stream, use func(replica string, line []byte)) (stop func(), err error) {
	r := &auditReader{own: c.id, use: use, logger: c.opts.Logger, senders: map[string]*auditSender{}}
	consumer, err := awaitStream(ctx, func() (jetstream.Consumer, error) {
		return stream.OrderedConsumer(c.ctx, jetstream.OrderedConsumerConfig{
			// With DeliverNewPolicy, a consumer that is made anew before the first message would
			// skip messages.
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: stream.CachedInfo().State.LastSeq + 1,
		})
	})
	if err != nil {
		return nil, err
	}
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		first, _ := strconv.ParseUint(m.Headers().Get(lineField), 10, 64) // 0 in messages of other releases
		r.useLines(m.Headers().Get(senderField), first, m.Data())
	})
	if err != nil {
		return nil, err
	}
	return reading.Stop, nil
}

// useLines passes those lines of a message on that did not come before. first is the number of the
// first line, or 0 if it is not known.
func (r *auditReader) useLines(sender string, first uint64, data []byte) {
	if sender == r.own {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.findSender(sender)
	if first > 0 && s.next > 0 && first > s.next {
		r.logger.Warn("this replica misses lines of the audit log of another one", "replica", sender, "lines", first-s.next)
	}
	number := first
	for line := range bytes.Lines(data) {
		if first > 0 {
			if number++; number <= s.next { // it has come before
				continue
			}
			s.next = number
		}
		r.use(sender, line)
	}
}

// findSender returns what is known of a replica. It may forget the one that was silent for the
// longest time.
func (r *auditReader) findSender(name string) *auditSender {
	s := r.senders[name]
	if s == nil {
		if len(r.senders) >= maxAuditSenders {
			r.dropOldest()
		}
		s = new(auditSender)
		r.senders[name] = s
	}
	s.used = time.Now()
	return s
}

// dropOldest forgets the replica that was silent for the longest time.
func (r *auditReader) dropOldest() {
	oldest := ""
	for name, s := range r.senders {
		if oldest == "" || s.used.Before(r.senders[oldest].used) {
			oldest = name
		}
	}
	delete(r.senders, oldest)
}
