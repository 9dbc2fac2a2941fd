package serving

import (
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
)

// responseBatch collects the responses to a batch of requests (revision 2025-03-26) and writes
// them as one frame when the last one has arrived.
type responseBatch struct {
	to Writer

	mu   sync.Mutex
	open int // requests without a response so far
	out  []byte
}

// addResponse adds one response, or nil for a request that gets no response.
func (b *responseBatch) addResponse(frame []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if frame != nil {
		if b.out == nil {
			b.out = append(b.out, '[')
		} else {
			b.out = append(b.out, ',')
		}
		b.out = append(b.out, frame...)
	}
	if b.open--; b.open == 0 && b.out != nil {
		_ = b.to.Write(append(b.out, ']')) // Write has already logged the error
	}
}

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
	b := &responseBatch{to: s}
	var refused [][]byte
	messages := make([]jsonrpc.Message, 0, len(raws))
	for _, raw := range raws {
		msg, err := jsonrpc.Parse(raw, frames.MethodNames)
		if err == nil && msg.Method == mcpwire.MethodInitialize {
			err = mcp.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")
		}
		if err != nil {
			if answer := s.answerMalformed(raw, msg.ID, err.(*mcp.Error)); answer != nil {
				b.open++
				refused = append(refused, answer)
			}
			continue
		}
		if msg.IsRequest() {
			b.open++
		}
		messages = append(messages, msg)
	}
	for _, answer := range refused {
		b.addResponse(answer)
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
