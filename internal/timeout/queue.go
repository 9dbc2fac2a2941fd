// Package timeout bounds many short things that mostly end in time. A timer of its own for each costs more than the thing
// itself where that takes microseconds: setting one wakes whoever waits for the next.
package timeout

import (
	"sync"
	"time"
)

// Expirer is something that may take too long.
type Expirer interface {
	// Expire is called once, on a goroutine of its own. It may run while Stop does, and after it.
	Expire()
}

// Queue calls Expire for what has not been stopped in time, which is the same for all. It needs one timer, which runs only
// while something waits. It is safe for concurrent use and must not be copied; it need not be closed.
type Queue struct {
	after time.Duration

	mu    sync.Mutex
	head  *Entry // what is due first
	tail  *Entry
	timer *time.Timer
	armed bool
}

// Entry is the place of something in a queue. The zero Entry is in none.
type Entry struct {
	owner      Expirer
	due        time.Time
	prev, next *Entry
}

// New returns a queue for what may take so long.
func New(after time.Duration) *Queue { return &Queue{after: after} }

// Start lets e expire for its owner after the queue's time. e must be in no queue.
func (q *Queue) Start(e *Entry, owner Expirer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e.owner, e.due, e.prev = owner, time.Now().Add(q.after), q.tail
	if q.tail == nil {
		q.head = e
	} else {
		q.tail.next = e
	}
	q.tail = e
	if !q.armed {
		q.arm(q.after)
	}
}

// Stop takes e out, whether or not it has expired.
func (q *Queue) Stop(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.owner != nil {
		q.remove(e)
	}
}

// remove takes e out; q.mu is held.
func (q *Queue) remove(e *Entry) {
	if e.prev == nil {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		q.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	*e = Entry{}
}

// arm sets the timer; q.mu is held.
func (q *Queue) arm(d time.Duration) {
	q.armed = true
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.fire)
		return
	}
	q.timer.Reset(d)
}

// fire lets expire what is due, and comes back for the rest.
func (q *Queue) fire() {
	for _, late := range q.expired(time.Now()) {
		go late.Expire() // which may block
	}
}

func (q *Queue) expired(now time.Time) (late []Expirer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.head != nil && !q.head.due.After(now) {
		late = append(late, q.head.owner)
		q.remove(q.head)
	}
	if q.armed = q.head != nil; q.armed {
		q.arm(q.head.due.Sub(now))
	}
	return late
}
