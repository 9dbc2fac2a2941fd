package hub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// connection is one connection to an upstream, of all or of one client.
type connection struct {
	upstream    *Upstream
	client      *client.Client
	lost        chan error // told once
	fingerprint string     // the fingerprint of the definition that it was made from
	opened      chan struct{}
	evicted     chan struct{} // closed when one that is a client's own has to make room
	openErr     error         // of opening; read after opened is closed

	lingerLimit  time.Duration
	replaced     context.Context // ends when another connection takes the place of this one
	markReplaced context.CancelFunc

	mu       sync.Mutex
	lastUsed time.Time
	calls    int
	drained  chan struct{} // made by linger, and closed when there is no call
}

func newConnection() *connection {
	in := &connection{lastUsed: time.Now()}
	in.replaced, in.markReplaced = context.WithCancel(context.Background())
	return in
}

// openConn connects. The instance lives until close, or until it is lost.
func (u *Upstream) openConn(ctx context.Context) (*connection, error) {
	u.mu.Lock()
	d := u.def
	u.mu.Unlock()
	in := newConnection()
	in.upstream, in.fingerprint, in.lingerLimit, in.lost = u, d.Fingerprint, d.Linger, make(chan error, 1)
	options := u.clientOptions(d)
	options.OnState = in.handleState
	c, err := client.Dial(ctx, u.dialTarget(d), options)
	if err != nil {
		return nil, err
	}
	in.client = c
	return in, nil
}

// clientOptions are those of a connection: the hub's own in what it does itself.
func (u *Upstream) clientOptions(d Definition) client.Options {
	o := d.Options
	o.Name = d.Name
	o.Info = u.hub.opts.Info
	o.Handler = questionHandler{u}
	o.Elicit, o.Sample, o.Roots, o.Requests = nil, nil, nil, nil
	o.Capabilities = askableCapabilities.And(o.Capabilities)
	o.Restart = client.Restart{Max: -1} // run does it
	o.NoCache, o.NoOutputCheck = true, true
	if _, ok := commandOf(d.Target); ok {
		o.Tap = u.history.tapStray(o.Tap)
	}
	if o.Logger == nil {
		o.Logger = u.hub.opts.Logger.With("server", d.Name)
	}
	return o
}

// dialTarget is that of the definition, with the server's stderr where it is shown.
func (u *Upstream) dialTarget(d Definition) any {
	c, ok := commandOf(d.Target)
	if !ok {
		return d.Target
	}
	if c.Stderr == nil {
		c.Stderr = &u.history
	}
	return c
}

// commandOf returns the command that a target is; false where it is none.
func commandOf(target any) (stdio.Command, bool) {
	switch t := target.(type) {
	case []string:
		if len(t) > 0 {
			return stdio.Command{Path: t[0], Args: t[1:]}, true
		}
	case stdio.Command:
		return t, true
	}
	return stdio.Command{}, false
}

// handleState hears of the connection's states.
func (in *connection) handleState(s client.State) {
	if s.Status != client.Failed && s.Status != client.Lost {
		return
	}
	select {
	case in.lost <- s.Err:
	default:
	}
}

// startCall counts a call, and returns what ends it.
func (in *connection) startCall() func() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	in.lastUsed = time.Now()
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.calls--
		in.lastUsed = time.Now()
		if in.calls == 0 && in.drained != nil {
			close(in.drained)
			in.drained = nil
		}
	}
}

// errReplaced is why a subscription ends whose server is restarted, or becomes another one.
var errReplaced = fmt.Errorf("%w: another one takes its place", mcp.ErrConnection)

// awaitCalls waits until the calls in flight are done, for a while, or until the upstream ends. Subscriptions are ended.
func (in *connection) awaitCalls(life context.Context) {
	in.markReplaced()
	in.mu.Lock()
	done := make(chan struct{})
	if in.calls == 0 {
		close(done)
	} else {
		in.drained = done
	}
	in.mu.Unlock()
	timer := time.NewTimer(in.lingerLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-life.Done():
	}
}

// idleTime returns how long there has been no call; 0 while there is one.
func (in *connection) idleTime() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.calls > 0 {
		return 0
	}
	return time.Since(in.lastUsed)
}

// evict makes a connection end that is a client's own.
func (in *connection) evict() { close(in.evicted) }

// errIdle is why a server has been stopped that nobody needed.
var errIdle = errors.New("nobody has called it for a while; the next call starts it")

// runSharedConn opens the connection that all share, and returns why it has ended.
func (u *Upstream) runSharedConn(ctx context.Context, began time.Time) error {
	in, err := u.openConn(ctx)
	if err != nil {
		return err
	}
	defer u.closeConn(ctx, in)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer u.withdrawSharedConn()
	f := u.followChanges(ctx, in, &work)
	if err := u.readLists(ctx, in); err != nil {
		return err
	}
	u.enterReady(ctx, in, time.Since(began))
	close(f.listsRead)
	return u.watchSharedConn(ctx, in)
}

// closeConn closes a connection that is of no use any more: at once, unless its calls in flight may go on beside the next.
func (u *Upstream) closeConn(ctx context.Context, in *connection) {
	var ordered *restartRequest
	if in.lingerLimit == 0 || !errors.As(context.Cause(ctx), &ordered) {
		in.client.Close()
		return
	}
	u.connWork.Go(func() {
		in.awaitCalls(u.lifeCtx)
		in.client.Close()
	})
}

// withdrawSharedConn takes the connection of all away from calls: one that is being closed is of no use to them.
func (u *Upstream) withdrawSharedConn() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sharedConn = nil
}

// enterReady makes in the connection of all, unless it is to be ended already.
func (u *Upstream) enterReady(ctx context.Context, in *connection, took time.Duration) {
	server := in.client.ServerInfo()
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	u.sharedConn = in
	u.info = Info{
		Server: server, Revision: in.client.Revision(), Instructions: in.client.Instructions(),
		Capabilities: in.client.Capabilities(), Took: took,
	}
	u.setState(State{Status: Ready, Cause: fmt.Sprintf("connected in %v", took.Round(time.Millisecond)), Attempt: u.state.Attempt})
	if cause := u.takeFileCause(); cause != "" {
		u.requestRestart(cause)
	}
}

// watchSharedConn waits until the connection is lost, or is of no use any more, and returns why.
func (u *Upstream) watchSharedConn(ctx context.Context, in *connection) error {
	look := time.NewTimer(u.checkInterval())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-in.lost:
			return err
		case <-look.C:
		}
		if limit := u.Definition().IdleStop; limit > 0 && in.idleTime() >= limit && u.clientConnsIdle(limit) {
			return errIdle
		}
		if err := u.pingConn(ctx, in); err != nil {
			return err
		}
		u.refreshStale(ctx, in)
		look.Reset(u.checkInterval())
	}
}

// checkInterval returns how long to wait before looking at the connection again.
func (u *Upstream) checkInterval() time.Duration {
	often := u.hub.opts.PingInterval
	if often < 0 {
		often = time.Hour
	}
	if limit := u.Definition().IdleStop; limit > 0 {
		often = min(often, max(limit/4, 10*time.Millisecond))
	}
	return often
}

// pingTimeout is how long a server may take for a pong, while it has nothing else to do.
const pingTimeout = 10 * time.Second

// pingConn tries an idle connection: with a ping, where its era has them, else by asking a server over HTTP who it is. That one that
// was started has ended is noticed without.
func (u *Upstream) pingConn(ctx context.Context, in *connection) error {
	every, method := u.hub.opts.PingInterval, mcp.MethodPing
	if in.client.Revision().Modern() {
		method = mcp.MethodDiscover
		if !targetIsURL(u.Definition().Target) {
			return nil
		}
	}
	if every < 0 || in.idleTime() < every/2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := in.client.RoundTrip(ctx, &mcp.Request{Method: method})
	var answered *mcp.Error
	switch {
	case err == nil, errors.As(err, &answered):
		return nil // an error is a sign of life too
	case in.idleTime() == 0:
		return nil // it has other things to do now
	}
	return fmt.Errorf("it did not answer a ping within %v: %w", pingTimeout, err)
}

// targetIsURL reports whether a target is a URL.
func targetIsURL(target any) bool {
	switch target.(type) {
	case string, streamable.URL, sse.URL:
		return true
	}
	return false
}
