package kv

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory returns a store that lives as long as the process.
func Memory() Store {
	m := &memory{pairs: map[string]pair{}}
	m.sweeper = startSweeper(m.removeExpired)
	return m
}

type memory struct {
	watcher
	sweeper *sweeper

	mu    sync.RWMutex
	pairs map[string]pair
}

type pair struct {
	value   string
	expires time.Time // zero: never
}

func (p pair) isExpired(now time.Time) bool { return !p.expires.IsZero() && !now.Before(p.expires) }

func (m *memory) Get(_ context.Context, key string) (string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	p, ok := m.pairs[key]
	if !ok || p.isExpired(time.Now()) {
		return "", fs.ErrNotExist
	}
	return p.value, nil
}

func (m *memory) Set(_ context.Context, key, value string, ttl time.Duration) (created bool, err error) {
	p := pair{value: value}
	if ttl > 0 {
		p.expires = time.Now().Add(ttl)
		defer m.sweeper.wakeUp()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.pairs[key]
	created = !ok || old.isExpired(time.Now())
	m.pairs[key] = p
	m.reportChanges(changeOfSet(created), key)
	return created, nil
}

func (m *memory) Delete(_ context.Context, key string) (existed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pairs[key]
	if !ok {
		return false, nil
	}
	delete(m.pairs, key)
	m.reportChanges(Removed, key)
	return !p.isExpired(time.Now()), nil
}

func (m *memory) Keys(_ context.Context, prefix, after string, limit int) ([]string, error) {
	now := time.Now()
	m.mu.RLock()
	defer m.mu.RUnlock()
	var keys []string
	for key, p := range m.pairs {
		if key > after && strings.HasPrefix(key, prefix) && !p.isExpired(now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), limit)], nil
}

func (m *memory) Watch(f func(Change)) error {
	m.setCallback(f)
	return nil
}

func (m *memory) Close() error {
	m.sweeper.stopSweeper()
	m.setCallback(nil)
	return nil
}

func (m *memory) removeExpired() (next time.Time, err error) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, p := range m.pairs {
		switch {
		case p.isExpired(now):
			delete(m.pairs, key)
			m.reportChanges(Removed, key)
		case !p.expires.IsZero() && (next.IsZero() || p.expires.Before(next)):
			next = p.expires
		}
	}
	return next, nil
}
