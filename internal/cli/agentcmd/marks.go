package agentcmd

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/callmark"
	"github.com/dowel-mcp/dowel/internal/journal"
)

// callMarks marks the model's calls, so that their frames are not taken for frames of other
// clients. The zero value is ready. It is safe for concurrent use.
type callMarks struct {
	mu    sync.Mutex
	marks []string // of the latest calls
}

// maxMarks limits the remembered calls, and the operations of the journal that belong to them.
const maxMarks = 256

// markCall returns a context that marks a call.
func (m *callMarks) markCall(ctx context.Context) context.Context {
	mark := rand.Text()
	m.mu.Lock()
	m.marks = appendLatest(m.marks, mark)
	m.mu.Unlock()
	return callmark.With(ctx, mark)
}

func (m *callMarks) isOwn(mark string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.marks, mark)
}

// filterFrames returns a function that passes frames between dowel and a server to show if they
// belong to a marked call. It wants all frames of one journal in their order.
func (m *callMarks) filterFrames(show func(*journal.Frame)) func(*journal.Frame) {
	var operations []uint64
	return func(f *journal.Frame) {
		if f.Operation == 0 {
			return
		}
		isKnown := slices.Contains(operations, f.Operation)
		if !isKnown && f.Mark != "" && m.isOwn(f.Mark) {
			operations, isKnown = appendLatest(operations, f.Operation), true
		}
		if isKnown && f.Leg == journal.ServerLeg {
			show(f)
		}
	}
}

// appendLatest appends an element and keeps the latest [maxMarks].
func appendLatest[T any](all []T, one T) []T {
	all = append(all, one)
	return slices.Delete(all, 0, max(len(all)-maxMarks, 0))
}
