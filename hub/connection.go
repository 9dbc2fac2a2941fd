package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/internal/startphase"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// connection is one connection to an upstream. All clients share it, or one client has it alone.
type connection struct {
	upstream    *Upstream
	client      *client.Client
	rootsNote   sync.Once       // notes that all clients may share one client's folders
	lost        chan error      // has room for one; receives the reason of the loss
	fingerprint string          // of the definition that it was opened for
	isCluster   bool            // another replica may run the server, which gets the principals of calls
	router      *questionRouter // of a legacy server on a shared channel; nil if questions name their call

	// Only for a client's own connection:
	opened  chan struct{} // closed when opening has succeeded or failed
	openErr error         // valid after opened is closed
	evicted chan struct{} // closed when it must make room for another client's connection

	lingerLimit  time.Duration
	replaced     context.Context // ends when the connection is replaced
	markReplaced context.CancelFunc

	mu       sync.Mutex
	lastUsed time.Time
	calls    int
	drained  chan struct{} // made by awaitCalls; closed when no call is left
}

// newConnection returns a connection that is not open yet.
func newConnection() *connection {
	conn := &connection{lastUsed: time.Now()}
	conn.replaced, conn.markReplaced = context.WithCancel(context.Background())
	return conn
}

// openConn dials the server, with a login of its own unless it is nil. The connection lives until
// its client is closed or it is lost.
func (u *Upstream) openConn(ctx context.Context, login *http.Client) (*connection, error) {
	u.mu.Lock()
	d := u.def
	u.mu.Unlock()
	conn := newConnection()
	conn.upstream, conn.fingerprint, conn.lingerLimit, conn.lost = u, d.Fingerprint, d.Linger, make(chan error, 1)
	options := u.clientOptions(d)
	options.OnState, options.Answers.Handler = conn.handleState, mcp.HandlerFunc(conn.answerQuestion)
	target := u.dialTarget(d)
	if login != nil { // the session belongs to one user
		target, options.HTTP.Client = withLogin(sharedserver.Unwrap(target), login), login
	}
	_, conn.isCluster = target.(*sharedserver.Target)
	if sharesChannel(target) {
		conn.router = newQuestionRouter(d.Name, d.Options.Wire.SerializeAsks)
	}
	if dialing := u.hub.opts.DialContext; dialing != nil {
		ctx = dialing(ctx, d.Name)
	}
	ctx = u.hub.dials.change(ctx, d.Name)
	c, err := client.Dial(ctx, target, &options)
	if err != nil {
		process.AwaitEnd(err) // two processes of a server must not run at the same time
		return nil, err
	}
	conn.client = c
	if c.Server().Revision.Modern() {
		conn.router = nil // modern servers do not ask live
	}
	return conn, nil
}

// sharesChannel reports whether all messages to a target may share one channel. Over Streamable
// HTTP a question arrives in the response of its call.
func sharesChannel(target any) bool {
	// Over the connection to the owner of a shared server, the server is a modern one.
	_, separate := sharedserver.Unwrap(target).(streamable.URL)
	return !separate
}

// clientOptions returns the definition's options for a dial. The hub replaces some of them, because
// it answers questions, reconnects and checks output itself.
func (u *Upstream) clientOptions(d Definition) client.Options {
	o := d.Options
	o.Name = d.Name
	o.Info = u.hub.opts.Info
	o.Answers.Elicit, o.Answers.Sample, o.Answers.Roots, o.Answers.Requests = nil, nil, nil, nil
	o.Answers.Capabilities = mcpwire.MergeCapabilities(askableCapabilities, o.Answers.Capabilities)
	o.Restart = client.Restart{Max: -1} // Upstream.run reconnects
	o.NoCache, o.NoOutputCheck = true, true
	o.Wire.SerializeAsks = false // the router does it, and lets others run while a question is open
	if _, ok := commandOf(d.Target); ok {
		o.Wire.Tap = u.history.tapStdout(o.Wire.Tap)
	}
	if o.Logger == nil {
		o.Logger = u.hub.opts.Logger.With("server", d.Name)
	}
	return o
}

// dialTarget returns the definition's target. A command writes its stderr to the history unless the
// definition says otherwise.
func (u *Upstream) dialTarget(d Definition) any {
	c, ok := commandOf(d.Target)
	if !ok {
		return d.Target
	}
	if c.Stderr == nil {
		c.Stderr = &u.history
	}
	if shared, ok := d.Target.(*sharedserver.Target); ok {
		return shared.With(c)
	}
	return c
}

// withLogin returns a target with another HTTP client, if it has one. Others take it from the
// options.
func withLogin(target any, login *http.Client) any {
	switch t := target.(type) {
	case streamable.URL:
		t.Client = login
		return t
	case sse.URL:
		t.Client = login
		return t
	case websocket.URL:
		t.Client = login
		return t
	}
	return target
}

// commandOf returns the command of a target; ok is false for other targets.
func commandOf(target any) (stdio.Command, bool) {
	switch t := target.(type) {
	case []string:
		if len(t) > 0 {
			return stdio.Command{Path: t[0], Args: t[1:]}, true
		}
	case stdio.Command:
		return t, true
	case *sharedserver.Target:
		return commandOf(t.Inner())
	}
	return stdio.Command{}, false
}

// handleState receives the client's states and passes the reason of a loss to conn.lost.
func (conn *connection) handleState(s client.State) {
	if s.Status != client.Failed && s.Status != client.Lost {
		return
	}
	select {
	case conn.lost <- s.Err:
	default:
	}
}

// startCall counts a call in flight. The caller calls endCall when the call has returned. u.mu is
// held, so that nothing ends the connection as idle between its choice and the call.
func (conn *connection) startCall() {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.calls++
	conn.lastUsed = time.Now()
}

func (conn *connection) endCall() {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.calls--
	conn.lastUsed = time.Now()
	if conn.calls == 0 && conn.drained != nil {
		close(conn.drained)
		conn.drained = nil
	}
}

// errReplaced ends subscriptions on a connection that is replaced.
var errReplaced = fmt.Errorf("%w: another one takes its place", mcp.ErrConnection)

// awaitCalls ends subscriptions, and waits until the calls in flight have returned, the linger
// limit is over, or life ends.
func (conn *connection) awaitCalls(life context.Context) {
	conn.markReplaced()
	conn.mu.Lock()
	done := make(chan struct{})
	if conn.calls == 0 {
		close(done)
	} else {
		conn.drained = done
	}
	conn.mu.Unlock()
	timer := time.NewTimer(conn.lingerLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-life.Done():
	}
}

// idleTime returns how long there has been no call; 0 during a call.
func (conn *connection) idleTime() time.Duration {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.calls > 0 {
		return 0
	}
	return time.Since(conn.lastUsed)
}

// evict ends a client's own connection.
func (conn *connection) evict() { close(conn.evicted) }

// errIdle is the reason of a stop after IdleStop.
var errIdle = errors.New("it had no call for a while; the next call starts it")

// runSharedConn opens the shared connection, reads the lists, and returns the reason of its end.
// start is the time when the attempt began.
func (u *Upstream) runSharedConn(ctx context.Context, start time.Time) error {
	release, err := u.takeRunnerSlot(ctx, u.Definition())
	if err != nil {
		return err
	}
	conn, err := u.openConn(startphase.WithObserver(ctx, func(p startphase.Phase) {
		if p.Runner == "" {
			release()
		}
		u.enterPhase(ctx, p)
	}), nil)
	release()
	if err != nil {
		return err
	}
	defer u.closeConn(ctx, conn)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer u.withdrawSharedConn()
	f := u.followChanges(ctx, conn, &work)
	if err := u.readLists(ctx, conn); err != nil {
		return err
	}
	u.enterReady(ctx, conn, time.Since(start))
	close(f.listsRead)
	return u.watchSharedConn(ctx, conn)
}

// closeConn closes a connection. After a restart request, calls in flight may continue for the
// linger limit.
func (u *Upstream) closeConn(ctx context.Context, conn *connection) {
	var ordered *restartRequest
	if conn.lingerLimit == 0 || !errors.As(context.Cause(ctx), &ordered) {
		conn.client.Close()
		return
	}
	u.connWork.Go(func() {
		conn.awaitCalls(u.lifeCtx)
		conn.client.Close()
	})
}

// withdrawSharedConn keeps new calls from a connection that is about to close.
func (u *Upstream) withdrawSharedConn() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sharedConn = nil
}

// withdrawIdleConn is withdrawSharedConn if the upstream has been idle for IdleStop. It reports
// whether it has.
func (u *Upstream) withdrawIdleConn(conn *connection) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	limit := u.def.IdleStop
	if limit <= 0 || conn.idleTime() < limit || !u.areClientConnsIdle(limit) {
		return false
	}
	u.sharedConn = nil
	return true
}

// enterReady makes conn the shared connection and enters Ready, unless ctx has ended.
func (u *Upstream) enterReady(ctx context.Context, conn *connection, took time.Duration) {
	server := conn.client.Server()
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	u.sharedConn = conn
	u.server = server
	u.setState(State{Status: Ready, Cause: fmt.Sprintf("connected in %v", took.Round(time.Millisecond)), Attempt: u.state.Attempt})
	if cause := u.takeFileCause(); cause != "" {
		u.requestRestart(cause)
	}
}

// watchSharedConn waits until the shared connection is lost, idle for IdleStop, or no longer
// wanted, and returns the reason. It also pings the server and rereads stale lists.
func (u *Upstream) watchSharedConn(ctx context.Context, conn *connection) error {
	check := time.NewTimer(u.checkInterval())
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-conn.lost:
			if limit := u.Definition().IdleStop; limit > 0 && conn.idleTime() >= limit/2 && sharedserver.IsReleased(err) {
				return errIdle // its owner has stopped it for that
			}
			return err
		case <-check.C:
		}
		if u.withdrawIdleConn(conn) {
			return errIdle
		}
		if err := u.pingConn(ctx, conn); err != nil {
			return err
		}
		u.refreshStale(ctx, conn)
		check.Reset(u.checkInterval())
	}
}

// checkInterval returns the time between two checks of the shared connection.
func (u *Upstream) checkInterval() time.Duration {
	interval := u.hub.opts.PingInterval
	if interval < 0 {
		interval = time.Hour
	}
	if limit := u.Definition().IdleStop; limit > 0 {
		interval = min(interval, max(limit/4, 10*time.Millisecond))
	}
	return interval
}

// pingTimeout limits how long an idle server may take to answer a ping.
const pingTimeout = 10 * time.Second

// pingConn checks an idle connection. Legacy servers get a ping. Modern servers over HTTP get
// server/discover, since their era has no ping; the end of a modern child process is noticed
// without.
func (u *Upstream) pingConn(ctx context.Context, conn *connection) error {
	interval, method := u.hub.opts.PingInterval, mcpwire.MethodPing
	if conn.client.Server().Revision.Modern() {
		method = mcp.MethodDiscover
		if !targetIsURL(u.Definition().Target) {
			return nil
		}
	}
	if interval < 0 || conn.idleTime() < interval/2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := conn.client.RoundTrip(ctx, &mcp.Request{Method: method})
	var answered *mcp.Error
	switch {
	case err == nil, errors.As(err, &answered):
		return nil // an error is an answer too
	case conn.idleTime() == 0:
		return nil // it is working on a call by now
	}
	return fmt.Errorf("it did not answer a ping within %v: %w", pingTimeout, err)
}

// targetIsURL reports whether a target is a URL.
func targetIsURL(target any) bool {
	switch t := target.(type) {
	case *sharedserver.Target:
		return t.IsOwn() && targetIsURL(t.Inner())
	case string, streamable.URL, sse.URL, websocket.URL:
		return true
	}
	return false
}
