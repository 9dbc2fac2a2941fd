package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/doctor"
	"github.com/dowel-mcp/dowel/mcp"
)

// Upstream is one server of a hub. It is safe for concurrent use.
type Upstream struct {
	hub     *Hub
	name    string
	history history
	lifeCtx context.Context    // of run
	stop    context.CancelFunc // ends lifeCtx
	done    chan struct{}      // closed when run has returned

	mu              sync.Mutex
	def             Definition
	state           State
	server          client.Server           // as of the last connection
	changed         chan struct{}           // closed and replaced at each change of state
	endAttempt      context.CancelCauseFunc // ends the current attempt or connection; nil without one
	wake            chan struct{}           // holds a token when run must look at the state
	redialed        chan struct{}           // holds a token after redial
	nextCause       string                  // cause of the next state
	neededByCall    bool                    // a call waits for a stopped server
	fileCause       string                  // a file change during the start, which restarts the server afterwards
	restartedByFile bool                    // the current start is such a restart
	awaited         awaitedChange           // that the last failure needs
	sharedConn      *connection             // nil unless Ready
	clientConns     map[string]*connection  // connections of single clients, by key
	connWork        sync.WaitGroup          // goroutines of client connections and of lingering ones
	lastUsed        time.Time               // time of the last call
	listsReadAt     time.Time               // time of the last reading
	lists           *serverLists            // nil until known
	isRecording     bool                    // recordLater has begun
	ownerless       int                     // failures in a row because a shared server had no owner
}

// restartRequest is the cause of a context that requestRestart has canceled.
type restartRequest struct{ cause string }

func (o *restartRequest) Error() string { return o.cause }

func newUpstream(h *Hub, d Definition) *Upstream {
	u := &Upstream{
		hub: h, name: d.Name, def: d, done: make(chan struct{}), changed: make(chan struct{}), wake: make(chan struct{}, 1), redialed: make(chan struct{}, 1),
		clientConns: map[string]*connection{}, lastUsed: time.Now(),
	}
	u.history.upstream = u
	return u
}

// startRunning enters the first state, with the lists of an earlier run, and starts the goroutine
// of run.
func (u *Upstream) startRunning(lists *serverLists, cause string) {
	ctx, stop := context.WithCancel(context.Background())
	u.lifeCtx, u.stop = ctx, stop
	u.mu.Lock()
	u.nextCause = cause
	u.lists = lists
	u.recordLater()
	u.enterStartState()
	u.mu.Unlock()
	go u.runUpstream(ctx)
}

// enterStartState enters Starting, Stopped or the held state of the definition. u.mu is held.
func (u *Upstream) enterStartState() {
	s := State{Status: Starting, Cause: u.nextCause}
	switch {
	case u.def.Hold.Status.Held():
		s = State{Status: u.def.Hold.Status, Cause: u.def.Hold.Reason}
	case u.def.Lazy && u.lists != nil && !u.neededByCall:
		s = State{Status: Stopped, Cause: "it is started by the first call"}
	}
	if old := u.state; old.Status != s.Status || old.Cause != s.Cause || old.Attempt > 0 {
		u.setState(s)
	}
}

// runUpstream starts the server and keeps it connected until ctx ends. Only its goroutine connects;
// others request changes with requestRestart.
func (u *Upstream) runUpstream(ctx context.Context) {
	defer close(u.done)
	files := fileWatch{upstream: u}
	defer files.stopWatch()
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

// stableAfter is how long a connection must last to reset the count of attempts.
const stableAfter = time.Minute

// runAttempt connects, stays connected, and enters the next state when the connection has ended.
func (u *Upstream) runAttempt(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if !u.registerAttempt(end) {
		return
	}
	u.history.startAttempt()
	start := time.Now()
	err := u.runSharedConn(ctx, start)
	var diagnosis *doctor.Diagnosis
	if ctx.Err() == nil && !errors.Is(err, errIdle) {
		diagnosis = u.diagnoseError(err)
		u.noteAwaited(ctx, err, diagnosis)
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

// registerAttempt makes end the function that ends the attempt. It reports false if a restart was
// requested meanwhile, which it carries out.
func (u *Upstream) registerAttempt(end context.CancelCauseFunc) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	select {
	case <-u.redialed: // this attempt is the one
	default:
	}
	select {
	case <-u.wake:
		u.enterStartState()
		return false
	default:
		u.endAttempt = end
		return true
	}
}

// clearWake takes the token of a request that has been carried out. u.mu is held.
func (u *Upstream) clearWake() {
	select {
	case <-u.wake:
	default:
	}
}

// setState enters a state and publishes it. u.mu is held.
func (u *Upstream) setState(s State) {
	old := u.state.Status
	s.Since = time.Now()
	u.state = s
	if s.Status == Ready || s.Status.Held() {
		u.neededByCall, u.ownerless = false, 0
	}
	close(u.changed)
	u.changed = make(chan struct{})
	e := Event{Time: s.Since, Upstream: u.name, Kind: StateChanged, State: s}
	u.history.addEvent(e)
	u.hub.bus.publish(e)
	switch {
	case inCatalog(old) != inCatalog(s.Status):
		u.announceChanges(u.lists.nonEmptyKinds())
	case !inCatalog(s.Status):
		u.hub.catalog.invalidate() // the catalog says why the items are missing
	}
}

// requestRestart ends the current connection and makes run start again. The state changes at once,
// so that no caller takes the ending connection for the new one. u.mu is held.
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

// redefine replaces the definition by another one of the same name, and restarts the server if that
// is needed. It reports whether the definitions must be compared again.
func (u *Upstream) redefine(d Definition, p preparedLists, cause string) (isLate bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	old, oldLists := u.def, u.lists
	u.def = d
	switch {
	case old.Fingerprint != d.Fingerprint:
		u.lists = p.lists
		u.announceChanges(u.lists.changedKinds(oldLists))
		u.recordLater()
		u.requestRestart(cause)
	case old.Hold != d.Hold, !slices.Equal(old.WatchPaths, d.WatchPaths), old.Lazy && !d.Lazy && u.state.Status == Stopped:
		isLate = u.reapplyRules(p)
		u.requestRestart(cause)
	default:
		isLate = u.reapplyRules(p)
		if u.waitsForChange() {
			u.requestRestart(cause) // the change of the file may be the awaited one
		}
	}
	return isLate
}

// Restart ends the server and starts it again at once. cause says why in a few words. It does
// nothing to an upstream that is removed.
func (u *Upstream) Restart(cause string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state.Status == Removed {
		return
	}
	u.neededByCall = true
	u.requestRestart(cause)
}

// remove ends the upstream and waits for it.
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

// Name returns the name of the definition.
func (u *Upstream) Name() string { return u.name }

// Definition returns the current definition.
func (u *Upstream) Definition() Definition {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.def
}

// State returns the current state.
func (u *Upstream) State() State {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.state
}

// Server returns the description that the server gave when it last became ready. It is zero before.
// The caller must not change the maps in it.
func (u *Upstream) Server() client.Server {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.server
}

// Instructions returns the server's instructions for models, of this run or else of an earlier one.
// Instructions that [Definition].HoldChanged withholds are empty.
func (u *Upstream) Instructions() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.holdsInstructions():
		return ""
	case u.server.Revision == "" && u.lists != nil:
		return u.lists.instructions
	}
	return u.server.Instructions
}

// Quarantined returns the items that are not offered because they are broken. The caller must not
// change the slice.
func (u *Upstream) Quarantined() []catalog.Quarantined {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lists == nil {
		return nil
	}
	return u.lists.quarantined // immutable
}

// Settle waits until the upstream is not starting, at most as long as a call would wait. It reports
// false if that time is over or ctx ends.
func (u *Upstream) Settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, u.startTimeout()+failureDelay)
	defer cancel()
	return u.awaitSettled(ctx)
}

// awaitSettled waits until the upstream is not starting. It reports false if ctx ends first.
func (u *Upstream) awaitSettled(ctx context.Context) bool {
	return u.awaitState(ctx, func() bool { return u.state.Status != Starting })
}

// awaitState waits until holds returns true, which it calls under u.mu at each change of state. It
// reports false if ctx ends first.
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

// AwaitCallable waits until a call can reach the upstream: it is ready, or stopped so that a call
// would start it. It reports false if ctx ends first or the upstream is held.
func (u *Upstream) AwaitCallable(ctx context.Context) (ready bool) {
	u.awaitState(ctx, func() bool {
		ready = u.state.Status == Ready || u.state.Status == Stopped
		return ready || u.state.Status.Held()
	})
	return ready
}

// DownError says that an upstream cannot be called, and why. It wraps [mcp.ErrConnection].
type DownError struct {
	// Upstream is the name of the upstream, State its state at the time of the call.
	Upstream string
	State    State
}

// Error names the upstream, its status and the reason.
func (e *DownError) Error() string {
	switch {
	case e.State.Diagnosis != nil && e.State.Diagnosis.Summary != "":
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, describeStatus(e.State.Status), e.State.Diagnosis.Summary)
	case e.State.Cause != "":
		return fmt.Sprintf("the server %s %s: %s", e.Upstream, describeStatus(e.State.Status), e.State.Cause)
	}
	return fmt.Sprintf("the server %s %s", e.Upstream, describeStatus(e.State.Status))
}

// describeStatus returns a verb phrase for a status, such as "is starting" or "needs trust".
func describeStatus(s Status) string {
	switch s {
	case Failed, NeedsAuthorization, NeedsConfiguration, NeedsTrust, NeedsLogin:
		return s.String()
	}
	return "is " + s.String()
}

// Unwrap returns [mcp.ErrConnection] and the error of the state, if it has one.
func (e *DownError) Unwrap() []error {
	if e.State.Err != nil {
		return []error{mcp.ErrConnection, e.State.Err}
	}
	return []error{mcp.ErrConnection}
}
