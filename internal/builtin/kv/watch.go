package kv

import "sync"

// watcher passes changes on, one at a time. The zero watcher is ready.
type watcher struct {
	mu sync.Mutex
	f  func(Change) // nil without a watch
}

func (w *watcher) setCallback(f func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f = f
}

// reportChanges tells of changes of one kind. The caller sees to their order.
func (w *watcher) reportChanges(kind ChangeKind, keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return
	}
	for _, key := range keys {
		w.f(Change{Kind: kind, Key: key})
	}
}

// changeOfSet is the kind of change that a Set is.
func changeOfSet(created bool) ChangeKind {
	if created {
		return Created
	}
	return Replaced
}
