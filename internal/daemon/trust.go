package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
)

// maxQuestions limits the questions about trust that wait for their answers. The oldest are
// dropped.
const maxQuestions = 64

// trustQuestions remembers what users have seen, so that they agree to nothing else.
type trustQuestions struct {
	mu   sync.Mutex
	seen map[string]configured.Untrusted
	ids  []string // of seen, the oldest first
}

// TrustQuestion implements [control.Controller].
func (d *Daemon) TrustQuestion(name string) (control.TrustQuestion, error) {
	waiting := d.source.Untrusted()
	i := slices.IndexFunc(waiting, func(u configured.Untrusted) bool { return u.Name == name })
	if i < 0 {
		return control.TrustQuestion{}, fmt.Errorf("%s does not wait for your trust", name)
	}
	u, q := waiting[i], &d.questions
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen == nil {
		q.seen = map[string]configured.Untrusted{}
	}
	if len(q.ids) == maxQuestions {
		delete(q.seen, q.ids[0])
		q.ids = q.ids[1:]
	}
	id := rand.Text()
	q.seen[id], q.ids = u, append(q.ids, id)
	return control.TrustQuestion{Name: u.Name, File: u.At.String(), Seen: id, Facts: u.Facts.Lines(), Changes: u.Changes, HasFiles: u.Facts.HasFiles()}, nil
}

// Trust implements [control.Controller].
func (d *Daemon) Trust(_ context.Context, name string, a control.TrustAnswer) error {
	d.questions.mu.Lock()
	u, ok := d.questions.seen[a.Seen]
	d.questions.mu.Unlock()
	if !ok || u.Name != name {
		return errors.New("this question is too old: look at the server again")
	}
	return d.source.Trust(u, a.Folder)
}
