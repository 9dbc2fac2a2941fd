package taskengine

import (
	"sync"
	"time"
)

// diskFault is the fault of the last attempt to start the server or to store a task. It has a lock
// of its own, because a start takes time.
type diskFault struct {
	mu      sync.Mutex
	err     error // nil after an attempt that has succeeded
	time    time.Time
	ofStore bool // a task could not be stored, so a start proves nothing
}

// note remembers a fault, and returns it.
func (f *diskFault) note(err error, ofStore bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.time, f.ofStore = err, time.Now(), ofStore
	return err
}

// noteStart forgets the fault of a start: the server runs.
func (f *diskFault) noteStart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ofStore {
		f.err = nil
	}
}

// noteStored forgets the fault: a task was stored.
func (f *diskFault) noteStored() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.ofStore = nil, false
}

// Fault returns why the last attempt to start the server or to store a task has failed, and when.
// It returns nil if the attempt has succeeded, or if there was none. It starts nothing, and does
// not wait.
func (d *Disk) Fault() (fault error, when time.Time) {
	d.fault.mu.Lock()
	defer d.fault.mu.Unlock()
	return d.fault.err, d.fault.time
}
