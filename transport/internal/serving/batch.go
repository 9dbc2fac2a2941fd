package serving

import (
	"errors"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// responseBatch collects the responses to a batch of requests (revision 2025-03-26) and writes
// them as one frame when the last one has arrived.
type responseBatch struct {
	to     Writer
	answer *BatchAnswer
	open   atomic.Int64 // requests without a response so far
}

// addResponse adds the response to a request, or nil for a request that gets no response.
func (b *responseBatch) addResponse(id jsonrpc.ID, frame []byte) {
	b.answer.Add(id, frame)
	if b.open.Add(-1) > 0 {
		return
	}
	all := b.answer.Take()
	if all == nil {
		return
	}
	err := b.to.Write(all) // Write has already logged the error
	if limit, ok := errors.AsType[*quota.LimitError](err); ok {
		_ = b.to.Write(b.answer.Refuse(limit))
	}
}

// accountedConn is a Conn that counts itself what waits for it to be written.
type accountedConn interface{ Account() quota.Account }

// serveBatch serves a batch if the session's revision has batches, and refuses it otherwise.
func (s *server) serveBatch(frame []byte) {
	ss := s.legacySession()
	if ss == nil || !mcpwire.AllowsBatches(ss.Revision) {
		frames.Show(s.opts.Tap, transport.Malformed, frame, nil)
		s.refuseBatch(frame, mcp.Errorf(jsonrpc.CodeInvalidRequest, "batches belong to revision %s only", mcp.Revision20250326))
		return
	}
	raws, err := mcpwire.SplitBatch(frame, frames.MaxBatch)
	if err != nil {
		frames.Show(s.opts.Tap, transport.Malformed, frame, nil)
		s.refuseFrame(jsonrpc.ID{}, err.(*mcp.Error))
		return
	}
	frames.Show(s.opts.Tap, transport.Received, frame, nil)
	b := &responseBatch{to: s, answer: NewBatchAnswer(s.batchAccount)}
	var refused []batchResponse
	messages := make([]jsonrpc.Message, 0, len(raws))
	for _, raw := range raws {
		msg, err := jsonrpc.Parse(raw, frames.MethodNames)
		if err == nil && msg.Method == mcpwire.MethodInitialize {
			err = mcp.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")
		}
		if err != nil {
			if answer := s.answerMalformed(raw, msg.ID, err.(*mcp.Error)); answer != nil {
				b.open.Add(1)
				refused = append(refused, batchResponse{msg.ID, answer})
			}
			continue
		}
		if msg.IsRequest() {
			b.open.Add(1)
		}
		messages = append(messages, msg)
	}
	for _, answer := range refused {
		b.addResponse(answer.id, answer.frame)
	}
	for _, msg := range messages {
		s.handleMessage(msg, b)
	}
}

// refuseBatch answers each request of a refused batch with e. A batch without requests gets one
// answer without an id.
func (s *server) refuseBatch(frame []byte, e *mcp.Error) {
	raws, _ := mcpwire.SplitBatch(frame, frames.MaxBatch) // raws is empty if the batch cannot be split
	answered := false
	for _, raw := range raws {
		if msg, err := jsonrpc.Parse(raw, frames.MethodNames); err == nil && msg.IsRequest() {
			s.refuseFrame(msg.ID, e)
			answered = true
		}
	}
	if !answered {
		s.refuseFrame(jsonrpc.ID{}, e)
	}
}
