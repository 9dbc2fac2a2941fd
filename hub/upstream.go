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
	hub     *Hub
	name    string
	history history
	lifeCtx context.Context    // of run
	stop    context.CancelFunc // ends it
	done    chan struct{}      // closed when run has returned

	mu              sync.Mutex
	def             Definition
	state           State
	info            Info
	changed         chan struct{}           // closed, and another made, when the state changes
	endAttempt      context.CancelCauseFunc // of the present attempt or connection; nil while there is none
	wake            chan struct{}           // holds a token when run has to look again
	nextCause       string                  // of what run does next
	neededByCall    bool                    // a call waits for a server that is stopped
	fileCause       string                  // why it is to be restarted when it has started: a file changed meanwhile
	restartedByFile bool                    // it is being restarted for that
	sharedConn      *connection             // nil unless Ready
	clientConns     map[string]*connection  // of clients that have one of their own
	connWork        sync.WaitGroup          // what keeps those open
	lastUsed        time.Time               // by a call
	listsReadAt     time.Time               // when its lists were read
	lists           *serverLists            // what it offers, as far as known
}

// restartRequest is the cause of a context that somebody has ended on purpose.
type restartRequest struct{ cause string }

func (o *restartRequest) Error() string { return o.cause }

func newUpstream(h *Hub, d Definition) *Upstream {
	u := &Upstream{
		hub: h, name: d.Name, def: d, done: make(chan struct{}), changed: make(chan struct{}), wake: make(chan struct{}, 1),
		clientConns: map[string]*connection{}, lastUsed: time.Now(),
	}
	u.history.upstream = u
	return u
}

// startRunning begins the upstream's life.
func (u *Upstream) startRunning(cause string) {
	ctx, stop := context.WithCancel(context.Background())
	u.lifeCtx, u.stop = ctx, stop
	u.mu.Lock()
	u.nextCause = cause
	u.lists = u.loadLists()
	u.enterStartState()
	u.mu.Unlock()
	go u.run(ctx)
}

// enterStartState enters the state in which the upstream waits or starts; u.mu is held.
func (u *Upstream) enterStartState() {
	s := State{Status: Starting, Cause: u.nextCause}
	switch {
	case u.def.Hold.Status.Held():
		s = State{Status: u.def.Hold.Status, Cause: u.def.Hold.Reason}
	case u.def.Lazy && u.lists != nil && !u.neededByCall:
		s = State{Status: Stopped, Cause: "it is started by the first call"}
	}
	if was := u.state; was.Status != s.Status || was.Cause != s.Cause || was.Attempt > 0 {
		u.setState(s)
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
			u.awaitNextStart(ctx)
		default:
			u.runAttempt(ctx)
		}
	}
}

// awaitNextStart waits for an order, or for the time of the next attempt, and begins anew.
func (u *Upstream) awaitNextStart(ctx context.Context) {
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
		u.enterRetry()
		return
	case <-u.wake:
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.enterStartState()
}

// enterRetry enters Starting for the next attempt in a row.
func (u *Upstream) enterRetry() {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.state
	u.setState(State{Status: Starting, Cause: "it is tried again", Err: s.Err, Diagnosis: s.Diagnosis, Attempt: s.Attempt})
}

// stableAfter is how long a connection must hold for its loss to begin a new row of attempts.
const stableAfter = time.Minute

// runAttempt connects, and returns when the connection has ended; then the next state has been entered.
func (u *Upstream) runAttempt(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !u.registerAttempt(end) {
		return
	}
	u.history.startAttempt()
	began := time.Now()
	err := u.runSharedConn(ctx, began)
	var diagnosis *doctor.Diagnosis
	if ctx.Err() == nil && !errors.Is(err, errIdle) {
		diagnosis = u.diagnoseError(err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.endAttempt, u.sharedConn = nil, nil
	var ordered *restartRequest
	switch cause := context.Cause(ctx); {
	case errors.As(cause, &ordered):
		u.clearWake()
		u.enterStartState()
	case ctx.Err() != nil: // the hub ends
	case errors.Is(err, errIdle):
		u.setState(State{Status: Stopped, Cause: err.Error()})
	default:
		u.enterFailure(err, diagnosis, u.state.Status == Ready && time.Since(u.state.Since) >= stableAfter)
	}
}

// registerAttempt makes end what ends the attempt, unless there is an order that has not been carried out: then that is done.
func (u *Upstream) registerAttempt(end context.CancelCauseFunc) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.wake:
		u.enterStartState()
		return false
	default:
		u.endAttempt = end
		return true
	}
}

// clearWake takes the token of an order that has been carried out; u.mu is held.
func (u *Upstream) clearWake() {
	select {
	case <-u.wake:
	default:
	}
}

// enterFailure enters the state behind an attempt that failed, or a connection that was lost; u.mu is held.
func (u *Upstream) enterFailure(err error, diagnosis *doctor.Diagnosis, steady bool) {
	s := State{Err: err, Diagnosis: diagnosis, Attempt: u.state.Attempt + 1, Cause: "it could not be started"}
	was := u.state.Status
	if steady {
		s.Attempt = 1
	}
	if was == Ready && (steady || s.Attempt == 1) {
		s.Status, s.Cause = Starting, "the connection was lost" // once, at once
		u.setState(s)
		return
	}
	s.Status = Failed
	if needsAuthorization(err) {
		s.Status = NeedsAuthorization
	}
	if was == Ready {
		s.Cause = "the connection was lost"
	}
	if cause := u.takeFileCause(); cause != "" {
		s.Status, s.Cause = Starting, cause
		u.setState(s)
		return
	}
	s.Next = time.Now().Add(u.retryDelay(s.Attempt))
	u.setState(s)
}

// retryDelay returns how long to wait before an attempt: shortened at random by up to half.
func (u *Upstream) retryDelay(attempt int) time.Duration {
	d := u.hub.opts.MaxBackoff
	if attempt < 16 {
		d = min(u.hub.opts.MinBackoff<<(attempt-1), u.hub.opts.MaxBackoff)
	}
	return d/2 + rand.N(d/2+1)
}

// setState sets the state and tells of it; u.mu is held.
func (u *Upstream) setState(s State) {
	was := u.state.Status
	s.Since = time.Now()
	u.state = s
	if s.Status == Ready || s.Status.Held() {
		u.neededByCall = false
	}
	close(u.changed)
	u.changed = make(chan struct{})
	e := Event{Time: s.Since, Upstream: u.name, Kind: StateChanged, State: s}
	u.history.addEvent(e)
	u.hub.bus.publish(e)
	switch {
	case inCatalog(was) != inCatalog(s.Status):
		u.announceChanges(u.lists.nonEmptyKinds())
	case !inCatalog(s.Status):
		u.hub.catalog.invalidate() // which says why its things are missing
	}
}

// requestRestart makes run begin anew: what runs is ended. The state says so at once, or who looks would take what is ending for the
// new one. u.mu is held.
func (u *Upstream) requestRestart(cause string) {
	u.nextCause, u.sharedConn = cause, nil
	if u.endAttempt != nil {
		u.endAttempt(&restartRequest{cause})
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
	u.enterStartState()
}

// redefine takes a definition of the same name.
func (u *Upstream) redefine(d Definition, cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	was, offer := u.def, u.lists
	u.def = d
	switch {
	case was.Fingerprint != d.Fingerprint:
		u.lists = u.loadLists()
		u.announceChanges(u.lists.changedKinds(offer))
		u.requestRestart(cause)
	case was.Hold != d.Hold, !slices.Equal(was.WatchPaths, d.WatchPaths), was.Lazy && !d.Lazy && u.state.Status == Stopped:
		u.reapplyRules()
		u.requestRestart(cause)
	default:
		u.reapplyRules()
	}
}

// Restart ends the server and starts it again, at once, unless it is removed. cause says why in a few words.
func (u *Upstream) Restart(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state.Status == Removed {
		return
	}
	u.neededByCall = true
	u.requestRestart(cause)
}

// remove ends the upstream and waits for that.
func (u *Upstream) remove(cause string) {
	u.mu.Lock()
	if u.endAttempt != nil {
		u.endAttempt(errors.New(cause))
	}
	u.mu.Unlock()
	u.stop()
	<-u.done
	u.mu.Lock()
	if u.state.Status != Removed {
		u.setState(State{Status: Removed, Cause: cause})
	}
	u.mu.Unlock()
	u.connWork.Wait()
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
	if u.info.Revision == "" && u.lists != nil {
		return u.lists.instructions
	}
	return u.info.Instructions
}

// Quarantined returns what the server has that is not offered, since it is broken.
func (u *Upstream) Quarantined() []Quarantined {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lists == nil {
		return nil
	}
	return u.lists.quarantined // which does not change
}

// Settle waits until the upstream is not starting, as long as a call would wait for it or ctx lasts, and reports which it was.
func (u *Upstream) Settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, u.startTimeout())
	defer cancel()
	return u.awaitSettled(ctx)
}

// awaitSettled waits until the upstream is not starting.
func (u *Upstream) awaitSettled(ctx context.Context) bool {
	return u.awaitState(ctx, func() bool { return u.state.Status != Starting })
}

// awaitState waits until something holds, which is looked at under u.mu when the state changes; false where ctx ends first.
func (u *Upstream) awaitState(ctx context.Context, holds func() bool) bool {
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

// AwaitCallable waits until calls can reach an upstream that was lost, which may take starting it; false where ctx ends first, or it
// is not started any more.
func (u *Upstream) AwaitCallable(ctx context.Context) (ready bool) {
	u.awaitState(ctx, func() bool {
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
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, describeStatus(e.State.Status), e.State.Diagnosis.Summary)
	case e.State.Cause != "":
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, describeStatus(e.State.Status), e.State.Cause)
	}
	return fmt.Sprintf("the server %s %s", e.Upstream, describeStatus(e.State.Status))
}

// describeStatus puts a status behind the name of a server.
func describeStatus(s Status) string {
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
