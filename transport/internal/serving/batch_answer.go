package serving

import (
	"sync"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// BatchAnswer collects the responses to a batch (revision 2025-03-26). They wait for the slowest
// request, so their bytes count for the client. A response that would exceed a limit becomes an
// error. It is safe for concurrent use.
type BatchAnswer struct {
	lease *quota.Lease

	mu        sync.Mutex
	responses []batchResponse
	bytes     int64
}

// batchResponse is one response of a batch.
type batchResponse struct {
	id    jsonrpc.ID
	frame []byte
}

// NewBatchAnswer returns an empty answer that is counted at the account.
func NewBatchAnswer(a quota.Account) *BatchAnswer {
	b := &BatchAnswer{}
	b.lease = a.NewLease(b)
	return b
}

// Add adds the response to the request with the given id. nil means no response.
func (b *BatchAnswer) Add(id jsonrpc.ID, frame []byte) {
	if frame == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := b.bytes + int64(len(frame))
	if bytes > quota.Uncounted && len(frame) > alwaysAccepted {
		if err := b.lease.Resize(bytes - quota.Uncounted); err != nil {
			frame = refuseFor(id, err)
			bytes = b.bytes + int64(len(frame))
		}
	}
	b.bytes = bytes
	b.responses = append(b.responses, batchResponse{id, frame})
}

// refuseFor is RefuseAnswer for an error of a lease, which is a [quota.LimitError].
func refuseFor(id jsonrpc.ID, err error) []byte {
	limit, _ := err.(*quota.LimitError)
	return RefuseAnswer(id, limit)
}

// CutOff implements [quota.Waiter]. It replaces the responses by errors, because others need the
// room; the connection stays.
func (b *BatchAnswer) CutOff(reason error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes = 0
	for i, r := range b.responses {
		if len(r.frame) > alwaysAccepted {
			b.responses[i].frame = refuseFor(r.id, reason)
		}
		b.bytes += int64(len(b.responses[i].frame))
	}
}

// Take returns the responses as one frame, or nil without any, and counts them no longer: their
// writer does.
func (b *BatchAnswer) Take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease.Release()
	return b.join(func(r batchResponse) []byte { return r.frame })
}

// Refuse returns the frame that takes the place of one that would exceed a limit.
func (b *BatchAnswer) Refuse(limit *quota.LimitError) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.join(func(r batchResponse) []byte { return RefuseAnswer(r.id, limit) })
}

// join returns a batch of one frame for each response. b.mu is held.
func (b *BatchAnswer) join(frameOf func(batchResponse) []byte) (out []byte) {
	for _, r := range b.responses {
		if out == nil {
			out = append(out, '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, frameOf(r)...)
	}
	if out == nil {
		return nil
	}
	return append(out, ']')
}
