package kv

import (
	"context"
	"sync"
	"time"
)

// Store holds pairs of keys and values. Its methods are safe for concurrent use. The server has
// checked keys and values before it calls them. An expired pair does not exist, even if it has not
// been removed yet.
type Store interface {
	// Get returns the value of a key, or an error that is [fs.ErrNotExist].
	Get(ctx context.Context, key string) (value string, err error)
	// Set stores a value, for as long as ttl where that is positive, else for good. It reports
	// whether the key is new.
	Set(ctx context.Context, key, value string, ttl time.Duration) (created bool, err error)
	// Delete removes a key. It reports whether there was one.
	Delete(ctx context.Context, key string) (existed bool, err error)
	// Keys returns at most limit of the keys that begin with prefix and come after a key, in the
	// order of their bytes. after need not exist; all keys come after the empty one.
	Keys(ctx context.Context, prefix, after string, limit int) ([]string, error)
	// Watch makes the store call f for each change by any process, one at a time and in order,
	// until Close. f returns quickly and does not call the store. Watch is called once, before any
	// other method.
	Watch(f func(Change)) error
	// Close ends the watch, waits for it, and releases the store's resources.
	Close() error
}

// Change is a change of a key.
type Change struct {
	Kind ChangeKind
	Key  string // empty where Kind is Missed
}

// ChangeKind says how a key changed.
type ChangeKind int

const (
	// Created: the key is new.
	Created ChangeKind = iota + 1
	// Replaced: the key has another value, or another time to live.
	Replaced
	// Removed: the key was deleted, or its time had come.
	Removed
	// Missed: changes may have been missed, of any keys. Replaced follows for all that there are.
	Missed
)

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
