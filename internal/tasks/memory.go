package tasks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/shrinkmap"
)

// Memory is a [Store] for one process. The zero value is ready.
type Memory struct {
	mu      sync.Mutex // guards the rest
	entries shrinkmap.Map[string, *memoryEntry]
	owners  shrinkmap.Map[string, *ownEntries]
}

// ownEntries are the entries of the tasks of one owner, by task id.
type ownEntries = shrinkmap.Map[string, *memoryEntry]

type memoryEntry struct {
	record *Record
	expiry *time.Timer
}

// Create implements [Store].
func (m *Memory) Create(_ context.Context, r *Record, most int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.owners.Get(r.Owner)
	if own == nil {
		own = new(ownEntries)
	}
	if most > 0 && own.Len() >= most {
		return TooMany(most)
	}
	r.Version = 1
	e := &memoryEntry{record: r, expiry: time.AfterFunc(time.Until(r.Expires()), func() { m.dropRecord(r.ID) })}
	m.entries.Put(r.ID, e)
	own.Put(r.ID, e)
	m.owners.Put(r.Owner, own)
	return nil
}

// Load implements [Store].
func (m *Memory) Load(_ context.Context, id string) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.liveEntry(id)
	if e == nil {
		return nil, ErrUnknown
	}
	return e.record, nil
}

// Replace implements [Store].
func (m *Memory) Replace(_ context.Context, next *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.liveEntry(next.ID)
	switch {
	case e == nil:
		return ErrUnknown
	case e.record.Version != next.Version:
		return ErrConflict
	}
	next.Version++
	e.record = next
	e.expiry.Reset(time.Until(next.Expires()))
	return nil
}

// List implements [Store].
func (m *Memory) List(_ context.Context, owner string) (own []*Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries := m.owners.Get(owner)
	if entries == nil {
		return nil, nil
	}
	for e := range entries.Values() {
		if time.Now().Before(e.record.Expires()) {
			own = append(own, e.record)
		}
	}
	slices.SortFunc(own, func(a, b *Record) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return own, nil
}

// ListTool implements [Store].
func (m *Memory) ListTool(_ context.Context, tool string) (open []*Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := range m.entries.Values() {
		if e.record.Tool == tool && !e.record.Status.IsTerminal() {
			open = append(open, e.record)
		}
	}
	return open, nil
}

// Runner implements [Store]. The process needs no name.
func (m *Memory) Runner() string { return "" }

// IsGone implements [Store]. The records end with the process that runs them.
func (m *Memory) IsGone(string) bool { return false }

// Prepare implements [Store].
func (m *Memory) Prepare() error { return nil }

// Close implements [Store]. It does nothing.
func (m *Memory) Close() error { return nil }

// liveEntry returns the entry of a record that has not expired, or nil. The caller holds m.mu.
func (m *Memory) liveEntry(id string) *memoryEntry {
	e := m.entries.Get(id)
	if e == nil || !time.Now().Before(e.record.Expires()) {
		return nil
	}
	return e
}

// dropRecord removes an expired record.
func (m *Memory) dropRecord(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries.Get(id)
	if e == nil || time.Now().Before(e.record.Expires()) {
		return // it lives longer now: another timer removes it
	}
	m.entries.Delete(id)
	own := m.owners.Get(e.record.Owner)
	if own.Delete(id); own.Len() == 0 {
		m.owners.Delete(e.record.Owner)
	}
}
