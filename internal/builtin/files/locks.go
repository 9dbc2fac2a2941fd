package files

import (
	"hash/maphash"
	"sync"
)

// locks has changes of one file made one after another. Two files may share a lock, which costs no
// more than time.
type locks struct {
	once  sync.Once
	seed  maphash.Seed
	slots [64]sync.Mutex
}

// lockPlace locks a place that is resolved.
func (l *locks) lockPlace(p place) (unlock func()) {
	l.once.Do(func() { l.seed = maphash.MakeSeed() })
	slot := &l.slots[maphash.String(l.seed, p.absolutePath())%uint64(len(l.slots))]
	slot.Lock()
	return slot.Unlock
}
