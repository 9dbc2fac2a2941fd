package quota_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
)

// connection is a Waiter that records why it was cut off.
type connection struct {
	mu     sync.Mutex
	reason error
}

func (c *connection) CutOff(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reason = reason
}

func (c *connection) isCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason != nil
}

var (
	alice = quota.Client{Name: "alice"}
	bob   = quota.Client{Name: "bob"}
	carol = quota.Client{Name: "carol"}
)

// hold makes a client hold bytes on a connection of its own.
func hold(t *testing.T, q *quota.Quota, c quota.Client, bytes int64) (*quota.Lease, *connection) {
	t.Helper()
	conn := &connection{}
	l := quota.Account{Quota: q, Client: c}.NewLease(conn)
	if err := l.Resize(bytes); err != nil {
		t.Fatal(err)
	}
	return l, conn
}

// wantLimit checks that err is a LimitError of the kind with the given name of the limit.
func wantLimit(t *testing.T, err error, perClient bool, name string) {
	t.Helper()
	var limit *quota.LimitError
	if !errors.As(err, &limit) || limit.PerClient != perClient || !strings.Contains(err.Error(), "("+name+")") {
		t.Errorf("got %v, want the limit %s", err, name)
	}
}

// wantUsed checks the bytes that are counted.
func wantUsed(t *testing.T, q *quota.Quota, want int64) {
	t.Helper()
	if bytes, _, _ := q.Used(); bytes != want {
		t.Errorf("%d bytes are counted, want %d", bytes, want)
	}
}

func TestBytesOfAClient(t *testing.T) {
	q := quota.New(quota.Limits{Bytes: 1000, ClientBytes: 100})
	first, _ := hold(t, q, alice, 60)
	second := quota.Account{Quota: q, Client: alice}.NewLease(&connection{})
	wantLimit(t, second.Resize(60), true, "clientBytes")
	hold(t, q, bob, 60)
	wantUsed(t, q, 120)
	first.Release()
	first.Release()
	if err := second.Resize(500); err != nil {
		t.Errorf("a message alone may have any size: %v", err)
	}
	wantLimit(t, quota.Account{Quota: q, Client: carol}.NewLease(&connection{}).Resize(600), false, "bytes")
	wantUsed(t, q, 560)
}

// A connection may hold one message of any size, but not several that exceed the limit.
func TestMessagesOfOneConnection(t *testing.T) {
	q := quota.New(quota.Limits{ClientBytes: 100})
	several, _ := hold(t, q, alice, 300)
	wantLimit(t, several.Resize(301), true, "clientBytes")
	several.Release()
	growing, _ := hold(t, q, alice, 80)
	if err := growing.Extend(200); err != nil {
		t.Errorf("one message that grows: %v", err)
	}
	wantUsed(t, q, 200)
}

// At its limit, a client's connection that has not read for long is cut off, but none that reads,
// and none of another client.
func TestStalledConnectionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{ClientBytes: 100})
		_, stalled := hold(t, q, alice, 50)
		reading, read := hold(t, q, alice, 50)
		_, other := hold(t, q, bob, 50)
		time.Sleep(3 * time.Second)
		reading.NoteProgress()
		hold(t, q, alice, 50)
		synctest.Wait()
		if !stalled.isCut() || read.isCut() || other.isCut() {
			t.Errorf("cut off: stalled %v, reading %v, other client %v", stalled.isCut(), read.isCut(), other.isCut())
		}
		wantUsed(t, q, 150)
		third := quota.Account{Quota: q, Client: alice}.NewLease(&connection{})
		wantLimit(t, third.Resize(50), true, "clientBytes")
		wantUsed(t, q, 150)
	})
}

// At the limit of the process, the connections of the client with the most bytes make room, and
// never the calls of a client that holds less than the newcomer does already.
func TestLargestClientMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{Bytes: 200, ClientBytes: 1000})
		_, small := hold(t, q, bob, 20)
		time.Sleep(time.Second)
		_, large := hold(t, q, alice, 80)
		_, larger := hold(t, q, alice, 80)
		time.Sleep(3 * time.Second)
		hold(t, q, carol, 60)
		synctest.Wait()
		if small.isCut() || !large.isCut() || larger.isCut() {
			t.Errorf("cut off: small %v, large %v, larger %v", small.isCut(), large.isCut(), larger.isCut())
		}
		greedy := quota.Account{Quota: q, Client: carol}.NewLease(&connection{})
		wantLimit(t, greedy.Resize(150), false, "bytes")
		if small.isCut() || larger.isCut() {
			t.Error("a connection was cut off although that was not enough")
		}
	})
}

// A connection that was cut off counts nothing any more, whatever it still does.
func TestLeaseAfterCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := quota.New(quota.Limits{ClientBytes: 100})
		old, _ := hold(t, q, alice, 100)
		time.Sleep(3 * time.Second)
		_, _ = hold(t, q, alice, 100)
		if err := old.Resize(200); err == nil {
			t.Error("it grows")
		}
		old.NoteProgress()
		old.Release()
		wantUsed(t, q, 100)
	})
}

func TestStreams(t *testing.T) {
	q := quota.New(quota.Limits{Streams: 3, ClientStreams: 2})
	for range 2 {
		if err := q.OpenStream(alice); err != nil {
			t.Fatal(err)
		}
	}
	wantLimit(t, q.OpenStream(alice), true, "clientStreams")
	if err := q.OpenStream(bob); err != nil {
		t.Fatal(err)
	}
	wantLimit(t, q.OpenStream(carol), false, "streams")
	q.CloseStream(alice)
	if err := q.OpenStream(carol); err != nil {
		t.Error(err)
	}
	for _, c := range []quota.Client{alice, bob, carol} {
		q.CloseStream(c)
	}
	if _, streams, _ := q.Used(); streams != 0 {
		t.Errorf("%d streams are left", streams)
	}
}

// session is a session that is counted.
type session struct {
	owner   quota.Client
	last    time.Time
	busy    bool
	evicted error
}

func (s *session) Owner() quota.Client          { return s.owner }
func (s *session) IdleSince() (time.Time, bool) { return s.last, !s.busy }
func (s *session) Evict(reason error)           { s.evicted = reason }
func at(owner quota.Client, second int64) *session {
	return &session{owner: owner, last: time.Unix(second, 0)}
}

func openAll(t *testing.T, q *quota.Quota, all ...*session) {
	t.Helper()
	for _, s := range all {
		if err := q.OpenSession(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSessionsOfAClient(t *testing.T) {
	q := quota.New(quota.Limits{ClientSessions: 2, Sessions: 100})
	oldest, newer, others := at(alice, 2), at(alice, 3), at(bob, 1)
	openAll(t, q, others, oldest, newer, at(alice, 4))
	if oldest.evicted == nil || newer.evicted != nil || others.evicted != nil {
		t.Error("not the oldest session of the client was evicted")
	}
	q.CloseSession(oldest) // no effect
	newer.busy = true
	last := at(alice, 5)
	openAll(t, q, last)
	last.busy = true
	wantLimit(t, q.OpenSession(at(alice, 6)), true, "clientSessions")
	if _, _, sessions := q.Used(); sessions != 3 {
		t.Errorf("%d sessions are counted, want 3", sessions)
	}
}

// At the limit of the process, the sessions of clients without a name make room for all, and the
// sessions of another named client never do.
func TestSessionsOfTheProcess(t *testing.T) {
	q := quota.New(quota.Limits{Sessions: 3})
	anonymous := at(quota.Client{Name: "10.0.0.1:5", Anonymous: true}, 2)
	openAll(t, q, at(alice, 1), at(bob, 1), anonymous, at(carol, 9))
	if anonymous.evicted == nil {
		t.Error("the session without a name was not evicted")
	}
	wantLimit(t, q.OpenSession(at(quota.Client{Name: "dora"}, 9)), false, "sessions")
	openAll(t, q, at(carol, 10)) // in place of its own
}

// Concurrent leases leave nothing behind.
func TestConcurrentLeases(t *testing.T) {
	q := quota.New(quota.Limits{Bytes: 1000, ClientBytes: 300})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			l := quota.Account{Quota: q, Client: []quota.Client{alice, bob, carol}[i%3]}.NewLease(&connection{})
			for n := range int64(500) {
				_ = l.Resize(n % 200) // some exceed a limit
				l.NoteProgress()
			}
			l.Release()
		})
	}
	all.Wait()
	wantUsed(t, q, 0)
}
