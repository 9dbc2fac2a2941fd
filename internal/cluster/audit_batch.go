package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxBatchLines and maxBatchBytes bound the lines of one message. A longer line is a message of
	// its own.
	maxBatchLines = 256
	maxBatchBytes = 256 << 10
	// senderField names the replica that has written the lines, and lineField has the number of the
	// first line.
	senderField = "Dowel-Replica"
	lineField   = "Dowel-Line"
)

// auditBatch is a message with consecutive lines of one replica. The lines stay in
// AuditLog.waiting until the message is stored.
type auditBatch struct {
	message *nats.Msg
	lines   int
}

// takeBatch returns a message with the next lines, or nil if no line waits. The message has an id:
// if it is sent twice within the time for which the stream remembers ids, it is stored once.
func (a *AuditLog) takeBatch() *auditBatch {
	most := min(maxBatchBytes, int(a.cluster.conn.MaxPayload())/2)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return nil
	}
	first := a.waiting[0].number
	b := &auditBatch{message: nats.NewMsg(a.cluster.subject("audit"))}
	for b.lines < min(len(a.waiting), a.most) {
		line := a.waiting[b.lines]
		if b.lines > 0 && (len(b.message.Data)+len(line.text) > most || line.number != first+uint64(b.lines)) {
			break
		}
		b.message.Data = append(b.message.Data, line.text...)
		b.lines++
		if !bytes.HasSuffix(line.text, []byte("\n")) { // the next one would continue it
			break
		}
	}
	b.message.Header.Set(senderField, a.cluster.id)
	b.message.Header.Set(lineField, strconv.FormatUint(first, 10))
	b.message.Header.Set(jetstream.MsgIDHeader, rand.Text())
	return b
}

// sendBatch sends lines and waits until they are stored. It returns false if the same message must
// be sent again, and true if the next message is due.
func (a *AuditLog) sendBatch(b *auditBatch) (isDone bool) {
	c := a.cluster
	if c.checkConnected() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	_, err := c.js.PublishMsg(ctx, b.message, jetstream.WithRetryAttempts(0))
	err = c.noteStore("the audit log", storeError(err))
	if isTooLarge(err) && b.lines > 1 {
		a.most = b.lines / 2
		return true
	}
	a.noteRefusal(err)
	switch {
	case err == nil:
		a.most = min(maxBatchLines, 2*a.most)
		a.dropLines(b.lines)
	case isTooLarge(err):
		a.dropLines(1)
		a.countLost()
	default:
		return false
	}
	return true
}

// errMessageTooLarge is the code of JetStream for a message above the limit of the stream.
const errMessageTooLarge jetstream.ErrorCode = 10054

// isTooLarge reports whether a message is refused for good because of its size.
func isTooLarge(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == errMessageTooLarge || errors.Is(err, nats.ErrMaxPayload)
}

// noteRefusal keeps the reason why the cluster stores no lines, and logs it once until the cluster
// stores lines again. Another function logs losses of the connection.
func (a *AuditLog) noteRefusal(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isNew := a.refusal == nil
	if a.refusal = err; isNew && err != nil && !isTooLarge(err) && !errors.Is(err, replica.ErrUnreachable) && !isBeingStored(err) {
		a.cluster.opts.Logger.Warn("lines of the audit log wait, because the cluster does not take them", "err", err)
	}
}

// countLost counts a line that no other replica gets.
func (a *AuditLog) countLost() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost++
}
