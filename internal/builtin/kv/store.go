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
	// Get returns the value of a key. If the key does not exist, the error is [fs.ErrNotExist].
	Get(ctx context.Context, key string) (value string, err error)
	// Set stores a value and replaces an existing one. If ttl is positive, the pair expires after
	// it. created is true if the key did not exist.
	Set(ctx context.Context, key, value string, ttl time.Duration) (created bool, err error)
	// Delete removes a key. It reports whether the key existed.
	Delete(ctx context.Context, key string) (existed bool, err error)
	// Keys returns at most limit keys, sorted by their bytes: the first ones that begin with prefix
	// and come after the key after, which need not exist. If after is empty, it returns the first
	// keys.
	Keys(ctx context.Context, prefix, after string, limit int) ([]string, error)
	// Watch makes the store call f for each change by any process, one at a time and in order,
	// until Close. f must return quickly and must not call the store. Watch is called once, before
	// any other method.
	Watch(f func(Change)) error
	// Close ends the watch, waits for a running f, and releases the store's resources.
	Close() error
}

// Change is a change of a key.
type Change struct {
	Kind ChangeKind
	Key  string // empty if Kind is Missed
}

// ChangeKind is the way in which a key changed.
type ChangeKind int

const (
	// Created: the key is new.
	Created ChangeKind = iota + 1
	// Replaced: the key has another value, or another time to live.
	Replaced
	// Removed: the key was deleted or has expired.
	Removed
	// Missed: changes of any keys may have been missed. A change of kind Replaced follows for each
	// key that exists, if the store can list them.
	Missed
)

// watcher passes changes to the callback of Watch, one at a time. The zero value is ready.
type watcher struct {
	mu sync.Mutex
	f  func(Change) // nil without a watch
}

func (w *watcher) setCallback(f func(Change)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.f = f
}

// reportChanges reports changes of one kind. The caller is responsible for their order.
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

// changeOfSet returns the kind of change for a result of Set.
func changeOfSet(created bool) ChangeKind {
	if created {
		return Created
	}
	return Replaced
}
