package journal

import (
	"cmp"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/secretmask"
)

// DefaultBytes is the default of [Options].Bytes.
const DefaultBytes = 16 << 20

// MaxBody is the largest part of a frame that is kept, in bytes.
const MaxBody = 1 << 20

// Options configure a [Recorder]. The zero value is ready for use.
type Options struct {
	// Bytes limits the memory of the journal. The oldest records are dropped. 0 means
	// [DefaultBytes].
	Bytes int
	// Secrets are masked in everything that is recorded, in addition to the secrets that can be
	// told by their form. nil means none.
	Secrets *secretmask.Set
}

// Recorder records the frames of connections. It is safe for concurrent use.
type Recorder struct {
	boot    string
	started time.Time
	secrets *secretmask.Set
	ring    ring
	conns   atomic.Uint64

	mu        sync.Mutex
	inbox     inbox
	scheduled bool // the timer runs, or a drain is going to look at the inbox again
	closed    bool
	timer     *time.Timer

	keeperMu sync.Mutex // held by a drain
	keeper   keeper
	spare    inbox
}

// New returns a recorder. The caller must call [Recorder.Close].
func New(o Options) *Recorder {
	r := &Recorder{boot: rand.Text()[:12], started: time.Now(), secrets: o.Secrets}
	if r.secrets == nil {
		r.secrets = secretmask.NewSet()
	}
	r.ring.maxBytes = cmp.Or(o.Bytes, DefaultBytes)
	r.keeper.setUp(r)
	r.mu.Lock() // the timer may fire before r.timer is set
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(drainDelay, r.drain)
	r.scheduled = true
	return r
}

// Boot returns a random name of this recorder. Sequence numbers of other recorders mean something
// else.
func (r *Recorder) Boot() string { return r.boot }

// ClientConn returns the sink of a connection to a client.
func (r *Recorder) ClientConn() *Conn { return r.newConn(ClientLeg, "") }

// ServerConn returns the sink of a connection to a server.
func (r *Recorder) ServerConn(server string) *Conn { return r.newConn(ServerLeg, server) }

func (r *Recorder) newConn(l Leg, server string) *Conn {
	return &Conn{recorder: r, number: r.conns.Add(1), leg: l, server: server}
}

// Cursor returns a cursor behind a sequence number. 0 means the beginning.
func (r *Recorder) Cursor(after uint64) *Cursor { return &Cursor{recorder: r, after: after} }

// Bounds returns the sequence numbers of the oldest record that is kept and of the newest one.
// oldest is newest+1 if the journal is empty.
func (r *Recorder) Bounds() (oldest, newest uint64) {
	r.Flush()
	return r.ring.bounds()
}

// Flush stores the frames that wait in the inbox.
func (r *Recorder) Flush() {
	r.keeperMu.Lock()
	defer r.keeperMu.Unlock()
	r.drainOnce()
}

// Close stores the frames that wait and ends the recording. Cursors can still read the records.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closed = true
	r.timer.Stop()
	r.mu.Unlock()
	r.Flush()
	r.ring.close()
}

// drain stores the frames that wait, until none waits.
func (r *Recorder) drain() {
	r.keeperMu.Lock()
	defer r.keeperMu.Unlock()
	for r.drainOnce() {
	}
}

// drainOnce stores the frames of one inbox. It reports false if the inbox was empty; the next frame
// schedules another drain then. r.keeperMu is held.
func (r *Recorder) drainOnce() bool {
	r.mu.Lock()
	if len(r.inbox.entries) == 0 {
		r.scheduled = false
		r.mu.Unlock()
		return false
	}
	full := r.inbox
	r.inbox = r.spare
	r.mu.Unlock()
	r.keeper.keepAll(&full)
	full.reset()
	r.spare = full
	return true
}
