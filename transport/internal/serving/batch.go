package serving

import (
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/internal/frames"
	"sync"

	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// batch collects the responses to a batch of requests (revision 2025-03-26) and sends them as one.
type batch struct {
	to Writer

	mu   sync.Mutex
	open int // requests not answered yet
	out  []byte
}

// add takes one response, nil for a request that is not answered.
func (b *batch) add(frame []byte) {
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
		_ = b.to.Write(append(b.out, ']')) // who cannot be written to has been told of
	}
}

// batch serves a batch where the session's revision has them, and refuses it elsewhere.
func (s *server) batch(frame []byte) {
	ss := s.legacySession()
	if ss == nil || !ss.Revision.Batches() {
		frames.Show(s.opts.Tap, transport.Stray, frame, nil)
		s.refuseBatch(frame, mcp.Errorf(jsonrpc.CodeInvalidRequest, "batches belong to revision %s only", mcp.Revision20250326))
		return
	}
	raws, err := jsonrpc.Batch(frame, frames.MaxBatch)
	if err != nil {
		frames.Show(s.opts.Tap, transport.Stray, frame, nil)
		s.refuseFrame(jsonrpc.ID{}, err.(*mcp.Error))
		return
	}
	frames.Show(s.opts.Tap, transport.Received, frame, nil)
	b := &batch{to: s}
	var refused [][]byte
	messages := make([]jsonrpc.Message, 0, len(raws))
	for _, raw := range raws {
		msg, err := s.parser.Parse(raw)
		if err == nil && msg.Method == mcp.MethodInitialize {
			err = mcp.Errorf(jsonrpc.CodeInvalidRequest, "initialize must not be part of a batch")
		}
		if err != nil {
			if answer := s.malformed(raw, msg.ID, err.(*mcp.Error)); answer != nil {
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
		b.add(answer)
	}
	for _, msg := range messages {
		s.message(msg, b)
	}
}

// refuseBatch answers each request of a batch that is not served, or the batch as a whole where it holds none.
func (s *server) refuseBatch(frame []byte, e *mcp.Error) {
	raws, _ := jsonrpc.Batch(frame, frames.MaxBatch) // what cannot be split holds none
	answered := false
	for _, raw := range raws {
		if msg, err := s.parser.Parse(raw); err == nil && msg.IsRequest() {
			s.refuseFrame(msg.ID, e)
			answered = true
		}
	}
	if !answered {
		s.refuseFrame(jsonrpc.ID{}, e)
	}
}
