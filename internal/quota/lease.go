package quota

import (
	"cmp"
	"slices"
	"time"
)

// Account is where the bytes of a connection are counted. The zero Account counts nothing.
type Account struct {
	Quota  *Quota
	Client Client
}

// Waiter is the connection that bytes wait for.
type Waiter interface {
	// CutOff ends the connection at once, with a reason for logs. The bytes that wait are dropped.
	CutOff(reason error)
}

// Lease counts the bytes that wait for one connection. Its methods are safe for concurrent use, and
// do nothing for a nil Lease.
type Lease struct {
	account Account
	waiter  Waiter
	isCache bool

	// All of these are guarded by the quota's mu.
	bytes        int64
	lastProgress time.Time
	older, newer *Lease
	evictedFor   error // why the connection was cut off; nil while it may wait
}

// NewLease returns a lease of 0 bytes, or nil if the account counts nothing.
func (a Account) NewLease(w Waiter) *Lease {
	if a.Quota == nil {
		return nil
	}
	return &Lease{account: a, waiter: w}
}

// NewCacheLease returns a lease of bytes that the process can do without, or nil if the account
// counts nothing. Such bytes make room for all others, however new they are, and for themselves
// they cut off nothing but a cache. They never exceed a limit.
func (a Account) NewCacheLease(w Waiter) *Lease {
	l := a.NewLease(w)
	if l != nil {
		l.isCache = true
	}
	return l
}

// stallTime is how long a connection may make no progress before it is cut off in favor of others.
// Shorter waits are normal even for a client that reads well.
const stallTime = 2 * time.Second

// Resize changes the number of bytes. A smaller number never fails and counts as progress. For a
// larger one that exceeds a limit, connections that have stalled are cut off: of the same client at
// its own limit, and at the limit of the process of clients that hold at least as much as this one
// does already. If that does not make enough room, Resize returns a [LimitError] and changes
// nothing. A first message may have any size if nothing else waits.
func (l *Lease) Resize(bytes int64) error { return l.resize(bytes, false) }

// Extend is [Lease.Resize] for a lease that counts a single message, which may have any size if
// nothing else waits.
func (l *Lease) Extend(bytes int64) error { return l.resize(bytes, true) }

func (l *Lease) resize(bytes int64, isOneMessage bool) error {
	if l == nil {
		return nil
	}
	if l.isCache { // the client loses nothing that it has asked for
		return l.tryResize(bytes, false)
	}
	return l.account.Quota.logRefusal(l.account.Client, l.tryResize(bytes, isOneMessage))
}

func (l *Lease) tryResize(bytes int64, isOneMessage bool) error {
	q := l.account.Quota
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.evictedFor != nil {
		return l.evictedFor
	}
	by := bytes - l.bytes
	if by > 0 {
		if err := q.makeRoom(l, by, !l.isCache && (isOneMessage || l.bytes == 0)); err != nil {
			return err
		}
	}
	q.unlinkLease(l)
	q.changeUsage(l.account.Client, usage{bytes: by})
	l.bytes = bytes
	if bytes > 0 {
		if by <= 0 || l.lastProgress.IsZero() {
			l.lastProgress = time.Now()
		}
		q.linkLease(l)
		return nil
	}
	l.lastProgress = time.Time{}
	return nil
}

// NoteProgress records that the client has read something.
func (l *Lease) NoteProgress() {
	if l == nil {
		return
	}
	q := l.account.Quota
	q.mu.Lock()
	defer q.mu.Unlock()
	if l.bytes > 0 {
		q.unlinkLease(l)
		l.lastProgress = time.Now()
		q.linkLease(l)
	}
}

// Release sets the number of bytes to 0.
func (l *Lease) Release() { _ = l.Resize(0) } // fails only if the lease is at 0

// makeRoom makes sure that a lease may grow by a number of bytes, and cuts off stalled connections
// for that. If isOneMessage, the lease may exceed a limit that nothing else uses. q.mu is held.
func (q *Quota) makeRoom(l *Lease, by int64, isOneMessage bool) error {
	// excess returns the bytes that others must free.
	excess := func(used, most int64) int64 {
		switch {
		case most < 0 || used+by <= most:
			return 0
		case isOneMessage:
			return min(used-l.bytes, used+by-most)
		}
		return used + by - most
	}
	own := q.clients.entries[l.account.Client].bytes
	if needed := excess(own, q.limits.ClientBytes); needed > 0 {
		limit := byteLimit(q.limits.ClientBytes, true)
		sameClient := func(c Client) bool { return c == l.account.Client }
		if !q.evictStalled(l, needed, sameClient, limit) {
			return limit
		}
	}
	if needed := excess(q.total.bytes, q.limits.Bytes); needed > 0 {
		limit := byteLimit(q.limits.Bytes, false)
		holdsMore := func(c Client) bool { return c == l.account.Client || q.clients.entries[c].bytes >= own }
		if !q.evictStalled(l, needed, holdsMore, limit) {
			return limit
		}
	}
	return nil
}

// evictStalled cuts off stalled connections until a number of bytes is free. Caches go first, then
// connections of the clients with the most bytes. If that is not possible, it cuts off none and
// returns false. q.mu is held.
func (q *Quota) evictStalled(newcomer *Lease, needed int64, mayEvict func(Client) bool, limit *LimitError) bool {
	var stalled []*Lease
	for l := q.oldest; l != nil; l = l.newer {
		isEvictable := l.isCache || !newcomer.isCache && time.Since(l.lastProgress) >= stallTime
		if isEvictable && l != newcomer && mayEvict(l.account.Client) {
			stalled = append(stalled, l)
		}
	}
	slices.SortStableFunc(stalled, func(a, b *Lease) int {
		switch {
		case a.isCache && !b.isCache:
			return -1
		case b.isCache && !a.isCache:
			return 1
		}
		return cmp.Compare(q.clients.entries[b.account.Client].bytes, q.clients.entries[a.account.Client].bytes)
	})
	for i, l := range stalled {
		if needed -= l.bytes; needed <= 0 {
			for _, l := range stalled[:i+1] {
				q.evictLease(l, limit)
			}
			return true
		}
	}
	return false
}

// evictLease cuts off the connection of a lease. q.mu is held.
func (q *Quota) evictLease(l *Lease, reason error) {
	q.unlinkLease(l)
	q.changeUsage(l.account.Client, usage{bytes: -l.bytes})
	l.bytes, l.evictedFor = 0, reason
	go l.waiter.CutOff(reason) // on its own goroutine, because the caller may hold the lock of another connection
}

// linkLease adds a lease behind those with older progress. q.mu is held.
func (q *Quota) linkLease(l *Lease) {
	at := q.newest
	for at != nil && at.lastProgress.After(l.lastProgress) {
		at = at.older
	}
	l.older = at
	if at == nil {
		l.newer, q.oldest = q.oldest, l
	} else {
		l.newer, at.newer = at.newer, l
	}
	if l.newer == nil {
		q.newest = l
	} else {
		l.newer.older = l
	}
}

// unlinkLease removes a lease from the list if the list has it. q.mu is held.
func (q *Quota) unlinkLease(l *Lease) {
	if l.bytes == 0 {
		return
	}
	if l.older == nil {
		q.oldest = l.newer
	} else {
		l.older.newer = l.newer
	}
	if l.newer == nil {
		q.newest = l.older
	} else {
		l.newer.older = l.older
	}
	l.older, l.newer = nil, nil
}
