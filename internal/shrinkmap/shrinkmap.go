// Package shrinkmap is a map that gives its memory back. A Go map keeps the size of its largest
// time: the table of 100,000 sessions stays in memory after they are gone.
package shrinkmap

import (
	"iter"
	"maps"
)

// A table of up to smallTable entries is kept.
const smallTable = 64

// Map is a map that moves to a smaller table when fewer than an eighth of its entries are left. The
// zero value is empty and ready for use. A Map must not be used concurrently.
type Map[K comparable, V any] struct {
	entries map[K]V
	most    int // the most entries that the table has had
}

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) V { return m.entries[key] }

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, value V) {
	if m.entries == nil {
		m.entries = map[K]V{}
	}
	m.entries[key] = value
	m.most = max(m.most, len(m.entries))
}

// Delete removes a key if it is there. It must not be called from a loop over Values.
func (m *Map[K, V]) Delete(key K) {
	delete(m.entries, key)
	if n := len(m.entries); m.most > smallTable && n < m.most/8 {
		entries := make(map[K]V, n)
		maps.Copy(entries, m.entries)
		m.entries, m.most = entries, n
	}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Values returns the values in no order.
func (m *Map[K, V]) Values() iter.Seq[V] { return maps.Values(m.entries) }
