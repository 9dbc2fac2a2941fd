// Package timeout limits the time of operations. A [Queue] serves many short operations that
// rarely reach their limit; it is cheaper than a timer for each of them, because setting a timer
// wakes the goroutine that waits for the next one. [Wait] limits the wait for a WaitGroup.
package timeout

import (
	"sync"
	"time"
)

// Expirer is an operation that may take too long.
type Expirer interface {
	// Expire is called once, on a goroutine of its own, when the limit has passed. It may run
	// during and after Stop.
	Expire()
}

// Queue calls Expire for each operation that is not stopped in time. The limit is the same for
// all operations. It uses one timer, which runs only while operations are in the queue. It is
// safe for concurrent use, must not be copied and need not be closed.
type Queue struct {
	after time.Duration

	mu    sync.Mutex
	head  *Entry // the operation that is due first
	tail  *Entry
	timer *time.Timer
	armed bool
}

// Entry is an operation's place in a queue. The zero Entry is in no queue.
type Entry struct {
	owner      Expirer
	due        time.Time
	prev, next *Entry
}

// New returns a queue with the given limit.
func New(after time.Duration) *Queue { return &Queue{after: after} }

// Start adds e to the queue: owner expires after the queue's limit. e must not be in a queue.
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
		q.startTimer(q.after)
	}
}

// Stop removes e from the queue. It does nothing if e has expired.
func (q *Queue) Stop(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.owner != nil {
		q.unlink(e)
	}
}

// unlink removes e from the list. The caller holds q.mu.
func (q *Queue) unlink(e *Entry) {
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

// startTimer sets the timer. The caller holds q.mu.
func (q *Queue) startTimer(d time.Duration) {
	q.armed = true
	if q.timer == nil {
		q.timer = time.AfterFunc(d, q.expireDue)
		return
	}
	q.timer.Reset(d)
}

// expireDue calls Expire for the due operations.
func (q *Queue) expireDue() {
	for _, late := range q.takeExpired(time.Now()) {
		go late.Expire() // on its own goroutine, because it may block
	}
}

func (q *Queue) takeExpired(now time.Time) (late []Expirer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.head != nil && !q.head.due.After(now) {
		late = append(late, q.head.owner)
		q.unlink(q.head)
	}
	if q.armed = q.head != nil; q.armed {
		q.startTimer(q.head.due.Sub(now))
	}
	return late
}
