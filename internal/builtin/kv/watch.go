package kv

import "sync"

// watcher passes changes on, one at a time. The zero watcher is ready.
type watcher struct {
	mu sync.Mutex
	f  func(Change) // nil: nobody watches
}

func (w *watcher) watch(f func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f = f
}

// report tells of changes of one kind. The caller sees to their order.
func (w *watcher) report(kind ChangeKind, keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return
	}
	for _, key := range keys {
		w.f(Change{Kind: kind, Key: key})
	}
}

// stored is the kind of change that a Set is.
func stored(created bool) ChangeKind {
	if created {
		return Created
	}
	return Replaced
}
