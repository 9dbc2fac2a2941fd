package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/mcp"
)

// Upstream is one server of a hub. It is safe for concurrent use.
type Upstream struct {
	hub  *Hub
	name string
	log  tail
	life context.Context    // of run
	stop context.CancelFunc // ends it
	done chan struct{}      // closed when run has returned

	mu        sync.Mutex
	def       Definition
	state     State
	info      Info
	changed   chan struct{}           // closed, and another made, when the state changes
	end       context.CancelCauseFunc // of the present attempt or connection; nil while there is none
	kick      chan struct{}           // holds a token when run has to look again
	cause     string                  // of what run does next
	wanted    bool                    // a call waits for a server that is stopped
	noted     string                  // why it is to be restarted when it has started: a file changed meanwhile
	noting    bool                    // it is being restarted for that
	main      *instance               // nil unless Ready
	instances map[string]*instance    // of clients that have one of their own
	own       sync.WaitGroup          // what keeps those open
	used      time.Time               // by a call
	learned   time.Time               // when its lists were read
	offer     *offer                  // what it offers, as far as known
}

// order is the cause of a context that somebody has ended on purpose.
type order struct{ cause string }

func (o *order) Error() string { return o.cause }

func newUpstream(h *Hub, d Definition) *Upstream {
	u := &Upstream{
		hub: h, name: d.Name, def: d, done: make(chan struct{}), changed: make(chan struct{}), kick: make(chan struct{}, 1),
		instances: map[string]*instance{}, used: time.Now(),
	}
	u.log.upstream = u
	return u
}

// start begins the upstream's life.
func (u *Upstream) start(cause string) {
	ctx, stop := context.WithCancel(context.Background())
	u.life, u.stop = ctx, stop
	u.mu.Lock()
	u.cause = cause
	u.offer = u.remembered()
	u.begin()
	u.mu.Unlock()
	go u.run(ctx)
}

// begin enters the state in which the upstream waits or starts; u.mu is held.
func (u *Upstream) begin() {
	s := State{Status: Starting, Cause: u.cause}
	switch {
	case u.def.Hold.Status.Held():
		s = State{Status: u.def.Hold.Status, Cause: u.def.Hold.Reason}
	case u.def.Lazy && u.offer != nil && !u.wanted:
		s = State{Status: Stopped, Cause: "it is started by the first call"}
	}
	if was := u.state; was.Status != s.Status || was.Cause != s.Cause || was.Attempt > 0 {
		u.enter(s)
	}
}

// run is the one goroutine that changes the state.
func (u *Upstream) run(ctx context.Context) {
	defer close(u.done)
	files := fileWatch{upstream: u}
	defer files.close()
	for ctx.Err() == nil {
		u.mu.Lock()
		status, paths := u.state.Status, u.def.WatchPaths
		u.mu.Unlock()
		if status.Held() || status == Stopped {
			paths = nil
		}
		files.watchPaths(paths)
		switch {
		case status != Starting:
			u.rest(ctx)
		default:
			u.live(ctx)
		}
	}
}

// rest waits for an order, or for the time of the next attempt, and begins anew.
func (u *Upstream) rest(ctx context.Context) {
	u.mu.Lock()
	next := u.state.Next
	u.mu.Unlock()
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return
	case <-due:
		u.retry()
		return
	case <-u.kick:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begin()
}

// retry enters Starting for the next attempt in a row.
func (u *Upstream) retry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.state
	u.enter(State{Status: Starting, Cause: "it is tried again", Err: s.Err, Diagnosis: s.Diagnosis, Attempt: s.Attempt})
}

// stable is how long a connection must hold for its loss to begin a new row of attempts.
const stable = time.Minute

// live connects, and returns when the connection has ended; then the next state has been entered.
func (u *Upstream) live(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !u.alive(end) {
		return
	}
	u.log.begin()
	began := time.Now()
	err := u.connect(ctx, began)
	var diagnosis *doctor.Diagnosis
	if ctx.Err() == nil && !errors.Is(err, errIdle) {
		diagnosis = u.diagnose(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.end, u.main = nil, nil
	var ordered *order
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &ordered):
		u.drain()
		u.begin()
	case ctx.Err() != nil: // the hub ends
	case errors.Is(err, errIdle):
		u.enter(State{Status: Stopped, Cause: err.Error()})
	default:
		u.fail(err, diagnosis, u.state.Status == Ready && time.Since(u.state.Since) >= stable)
	}
}

// alive makes end what ends the attempt, unless there is an order that has not been carried out: then that is done.
func (u *Upstream) alive(end context.CancelCauseFunc) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.kick:
		u.begin()
		return false
	default:
		u.end = end
		return true
	}
}

// drain takes the token of an order that has been carried out; u.mu is held.
func (u *Upstream) drain() {
	select {
	case <-u.kick:
	default:
	}
}

// fail enters the state behind an attempt that failed, or a connection that was lost; u.mu is held.
func (u *Upstream) fail(err error, diagnosis *doctor.Diagnosis, steady bool) {
	s := State{Err: err, Diagnosis: diagnosis, Attempt: u.state.Attempt + 1, Cause: "it could not be started"}
	was := u.state.Status
	if steady {
		s.Attempt = 1
	}
	if was == Ready && (steady || s.Attempt == 1) {
		s.Status, s.Cause = Starting, "the connection was lost" // once, at once
		u.enter(s)
		return
	}
	s.Status = Failed
	if needsAuthorization(err) {
		s.Status = NeedsAuthorization
	}
	if was == Ready {
		s.Cause = "the connection was lost"
	}
	if cause := u.takeNoted(); cause != "" {
		s.Status, s.Cause = Starting, cause
		u.enter(s)
		return
	}
	s.Next = time.Now().Add(u.pause(s.Attempt))
	u.enter(s)
}

// pause returns how long to wait before an attempt: shortened at random by up to half.
func (u *Upstream) pause(attempt int) time.Duration {
	d := u.hub.opts.Cap
	if attempt < 16 {
		d = min(u.hub.opts.Base<<(attempt-1), u.hub.opts.Cap)
	}
	return d/2 + rand.N(d/2+1)
}

// enter sets the state and tells of it; u.mu is held.
func (u *Upstream) enter(s State) {
	was := u.state.Status
	s.Since = time.Now()
	u.state = s
	if s.Status == Ready || s.Status.Held() {
		u.wanted = false
	}
	close(u.changed)
	u.changed = make(chan struct{})
	e := Event{Time: s.Since, Upstream: u.name, Kind: StateChanged, State: s}
	u.log.keep(e)
	u.hub.bus.publish(e)
	switch {
	case offered(was) != offered(s.Status):
		u.announce(u.offer.kinds())
	case !offered(s.Status):
		u.hub.catalog.invalidate() // which says why its things are missing
	}
}

// order makes run begin anew: what runs is ended. The state says so at once, or who looks would take what is ending for the
// new one. u.mu is held.
func (u *Upstream) order(cause string) {
	u.cause, u.main = cause, nil
	if u.end != nil {
		u.end(&order{cause})
	}
	select {
	case u.kick <- struct{}{}:
	default:
	}
	u.begin()
}

// redefine takes a definition of the same name.
func (u *Upstream) redefine(d Definition, cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was, offer := u.def, u.offer
	u.def = d
	switch {
	case was.Fingerprint != d.Fingerprint:
		u.offer = u.remembered()
		u.announce(u.offer.differs(offer))
		u.order(cause)
	case was.Hold != d.Hold, !slices.Equal(was.WatchPaths, d.WatchPaths), was.Lazy && !d.Lazy && u.state.Status == Stopped:
		u.reoffer()
		u.order(cause)
	default:
		u.reoffer()
	}
}

// Restart ends the server and starts it again, at once, unless it is removed. cause says why in a few words.
func (u *Upstream) Restart(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state.Status == Removed {
		return
	}
	u.wanted = true
	u.order(cause)
}

// remove ends the upstream and waits for that.
func (u *Upstream) remove(cause string) {
	u.mu.Lock()
	if u.end != nil {
		u.end(errors.New(cause))
	}
	u.mu.Unlock()
	u.stop()
	<-u.done
	u.mu.Lock()
	if u.state.Status != Removed {
		u.enter(State{Status: Removed, Cause: cause})
	}
	u.mu.Unlock()
	u.own.Wait()
}

// Name is how users know the server.
func (u *Upstream) Name() string { return u.name }

// Definition returns what the upstream is.
func (u *Upstream) Definition() Definition {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.def
}

// State returns what the upstream is doing.
func (u *Upstream) State() State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Info returns what the server said of itself when it was connected to last.
func (u *Upstream) Info() Info {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.info
}

// Instructions returns what the server tells models of itself: by its last connection, else as it is remembered from an earlier run.
func (u *Upstream) Instructions() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.info.Revision == "" && u.offer != nil {
		return u.offer.says
	}
	return u.info.Instructions
}

// Quarantined returns what the server has that is not offered, since it is broken.
func (u *Upstream) Quarantined() []Quarantined {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.offer == nil {
		return nil
	}
	return u.offer.quarantined // which does not change
}

// Settle waits until the upstream is not starting, as long as a call would wait for it or ctx lasts, and reports which it was.
func (u *Upstream) Settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, u.patience())
	defer cancel()
	return u.settle(ctx)
}

// settle waits until the upstream is not starting.
func (u *Upstream) settle(ctx context.Context) bool {
	return u.wait(ctx, func() bool { return u.state.Status != Starting })
}

// wait waits until something holds, which is looked at under u.mu when the state changes; false where ctx ends first.
func (u *Upstream) wait(ctx context.Context, holds func() bool) bool {
	for {
		u.mu.Lock()
		done, changed := holds(), u.changed
		u.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Revived waits until calls can reach an upstream that was lost, which may take starting it; false where ctx ends first, or it
// is not started any more.
func (u *Upstream) Revived(ctx context.Context) (ready bool) {
	u.wait(ctx, func() bool {
		ready = u.state.Status == Ready || u.state.Status == Stopped
		return ready || u.state.Status.Held()
	})
	return ready
}

// DownError says that an upstream cannot be called, and why. It is an [mcp.ErrConnection].
type DownError struct {
	Upstream string
	State    State
}

func (e *DownError) Error() string {
	switch {
	case e.State.Diagnosis != nil && e.State.Diagnosis.Summary != "":
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, is(e.State.Status), e.State.Diagnosis.Summary)
	case e.State.Cause != "":
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, is(e.State.Status), e.State.Cause)
	}
	return fmt.Sprintf("the server %s %s", e.Upstream, is(e.State.Status))
}

// is puts a status behind the name of a server.
func is(s Status) string {
	switch s {
	case Failed, NeedsAuthorization, NeedsConfiguration, NeedsTrust:
		return s.String()
	}
	return "is " + s.String()
}

func (e *DownError) Unwrap() []error {
	if e.State.Err != nil {
		return []error{mcp.ErrConnection, e.State.Err}
	}
	return []error{mcp.ErrConnection}
}
