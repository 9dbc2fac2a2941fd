package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/process"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Restart says how a lost connection is restored. The client dials again; if the target is a
// command, that starts the server again.
type Restart struct {
	// Max bounds the consecutive attempts. The count starts again after a connection that lasted a
	// minute. 0 means 5; a negative value means that the client does not reconnect.
	Max int
	// Base is the wait before the first attempt. It doubles before each further attempt, up to Cap,
	// and is shortened at random by up to half. 0 means 250 ms and 30 s.
	Base, Cap time.Duration
}

// stableAfter is how long a connection must last for its loss to restart the count of attempts.
const stableAfter = time.Minute

func (r Restart) withDefaults() Restart {
	switch {
	case r.Max == 0:
		r.Max = 5
	case r.Max < 0:
		r.Max = 0
	}
	if r.Base <= 0 {
		r.Base = 250 * time.Millisecond
	}
	if r.Cap <= 0 {
		r.Cap = max(30*time.Second, r.Base)
	}
	return r
}

// connection holds the transport to the server and replaces it when it is lost.
type connection struct {
	dialer       transport.Dialer
	options      transport.ClientOptions
	oneShot      bool // cannot be dialed again
	isCommand    bool // the server is a child process
	restart      Restart
	connectLimit time.Duration
	installLimit time.Duration

	answer  mcp.Handler            // answers the questions of legacy servers
	notify  func(mcp.Notification) // handles notifications that belong to no call
	reset   func()                 // forgets the lists and results of the lost connection
	onState func(State)

	current     atomic.Pointer[link]   // nil unless Ready
	server      atomic.Pointer[Server] // of the last link
	lifetime    context.Context        // ends with Close
	endLifetime context.CancelFunc
	retryNow    chan struct{} // ends the wait for the next attempt
	goroutines  sync.WaitGroup
	callbacks   atomic.Int32 // functions of the user that run: OnState, OnChange, OnLog and OnNotification

	mu         sync.Mutex
	state      State
	changed    chan struct{} // closed when the state changes
	unreported []State
	reporting  bool
	tries      int // consecutive attempts
}

// link is one transport and the [mcp.Inbound] that receives its requests and notifications.
type link struct {
	owner      *connection
	transport  mcp.Transport
	server     Server
	readySince time.Time
	err        error // why it was lost; guarded by owner.mu
}

func (l *link) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return l.owner.answer.ServeMCP(ctx, req)
}

func (l *link) Notify(n mcp.Notification) { l.owner.notify(n) }

func (l *link) Down(err error) { l.owner.linkLost(l, err) }

// openLink connects. If the remembered era of the server proves wrong, it connects a second time
// and finds the era out.
func (c *connection) openLink(ctx context.Context) error {
	ctx, cancel := c.withDialLimit(ctx)
	defer cancel()
	verdict := c.rememberedEra()
	l, err := c.dialLink(ctx, verdict != "")
	if err != nil && verdict != "" && mayBeWrongEra(err) && ctx.Err() == nil {
		c.forgetEra()
		l, err = c.dialLink(ctx, false)
	}
	if err != nil {
		return addTimeoutCause(ctx, err)
	}
	return c.adoptLink(l)
}

// reachLimit returns the limit for reaching the server: start for a command, connect otherwise.
func (c *connection) reachLimit(connect, start time.Duration) time.Duration {
	if c.isCommand && start != 0 {
		return start
	}
	return connect
}

// withConnectLimit bounds ctx by limit, or by the connection's own limit if limit is 0.
func (c *connection) withConnectLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		limit = c.connectLimit
	}
	if limit < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, &TimeoutError{Kind: TimeoutConnect, After: limit})
}

// withinLimit reports whether the time since a moment is below the limit for connecting.
func (c *connection) withinLimit(since time.Time, limit time.Duration) bool {
	if limit == 0 {
		limit = c.connectLimit
	}
	return limit < 0 || time.Since(since) < limit
}

func (c *connection) dialLink(ctx context.Context, strict bool) (*link, error) {
	l := &link{owner: c}
	t, err := c.dialer.Dial(ctx, l, c.options)
	if err != nil {
		return nil, err
	}
	l.transport = t
	if err := l.discoverServer(ctx, strict); err != nil {
		t.Close()
		return nil, err
	}
	return l, nil
}

// adoptLink makes l the link that calls use.
func (c *connection) adoptLink(l *link) error {
	c.mu.Lock()
	err := l.err
	if c.state.Status == Closed {
		err = mcp.ErrClosed
	}
	if err == nil {
		l.readySince = time.Now()
		c.server.Store(&l.server)
		c.current.Store(l)
		c.setState(State{Status: Ready, Attempt: c.tries})
	}
	c.mu.Unlock()
	if err != nil {
		l.transport.Close()
		return err
	}
	c.reportStates()
	return nil
}

// linkLost records that a link has failed. It may be called at any time after the link's dial
// began.
func (c *connection) linkLost(l *link, err error) {
	c.mu.Lock()
	defer c.reportStates()
	defer c.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = connectionError(err)
	if !c.current.CompareAndSwap(l, nil) {
		return
	}
	if time.Since(l.readySince) >= stableAfter {
		c.tries = 0
	}
	c.reset()
	wait, again := c.scheduleRetry(l.err)
	c.goroutines.Go(func() { c.replaceLink(l, wait, again) })
}

// replaceLink closes the lost link and dials until a new one is ready. The link cannot be closed
// where its loss is reported, because Close waits for that goroutine.
func (c *connection) replaceLink(l *link, wait time.Duration, again bool) {
	l.transport.Close() // the cause of the loss is in l.err
	c.redialLoop(wait, again)
}

func (c *connection) redialLoop(wait time.Duration, again bool) {
	for again && waitDelay(c.lifetime, wait, c.retryNow) {
		c.enterState(State{Status: Connecting, Attempt: c.currentState().Attempt})
		err := c.openLink(c.lifetime)
		if err == nil {
			return
		}
		process.AwaitEnd(err)
		c.mu.Lock()
		wait, again = c.scheduleRetry(err)
		c.mu.Unlock()
		c.reportStates()
	}
}

// scheduleRetry enters Lost, or Failed after the last attempt. The caller holds c.mu.
func (c *connection) scheduleRetry(err error) (wait time.Duration, again bool) {
	if c.state.Status == Closed {
		return 0, false
	}
	if httpwire.AsRefusal(err) != nil {
		c.setState(State{Status: Failed, Err: err, Attempt: c.tries})
		return 0, false
	}
	if c.tries >= c.restart.Max {
		c.setState(State{Status: Failed, Err: gaveUpError(c.tries, err), Attempt: c.tries})
		return 0, false
	}
	c.tries++
	wait = backoff{c.restart.Base, c.restart.Cap}.delay(c.tries)
	c.setState(State{Status: Lost, Err: err, Attempt: c.tries, Next: time.Now().Add(wait)})
	return wait, true
}

// acquireLink returns the current link, or waits for one within the limit for connecting.
func (c *connection) acquireLink(ctx context.Context, limit time.Duration) (*link, error) {
	if l := c.current.Load(); l != nil {
		return l, nil
	}
	bound, cancel := c.withConnectLimit(ctx, limit)
	defer cancel()
	for {
		c.mu.Lock()
		l, state, changed := c.current.Load(), c.state, c.changed
		c.mu.Unlock()
		switch {
		case l != nil:
			return l, nil
		case state.Status == Closed:
			return nil, mcp.ErrClosed
		case state.Status == Failed:
			return nil, state.Err
		}
		select {
		case <-changed:
		case <-bound.Done():
			return nil, unavailableError(context.Cause(bound), state)
		}
	}
}

// Reconnect drops the connection and dials again at once, with a new count of attempts. It returns
// when the client is ready, has failed, or ctx has ended; in the last case the attempts continue in
// the background.
func (c *Client) Reconnect(ctx context.Context) error {
	if c.conn.oneShot {
		return errors.New("this connection was made by the caller of Dial and cannot be dialed again")
	}
	c.conn.reconnect()
	_, err := c.conn.acquireLink(ctx, 0)
	return err
}

var errReconnect = fmt.Errorf("%w: a new one was asked for", mcp.ErrConnection)

func (c *connection) reconnect() {
	if l := c.current.Load(); l != nil {
		c.linkLost(l, errReconnect)
	}
	c.mu.Lock()
	defer c.reportStates()
	defer c.mu.Unlock()
	c.tries = 0
	switch c.state.Status {
	case Failed:
		c.tries = 1
		c.setState(State{Status: Lost, Err: c.state.Err, Attempt: c.tries, Next: time.Now()})
		c.goroutines.Go(func() { c.redialLoop(0, true) })
	case Lost:
		select {
		case c.retryNow <- struct{}{}:
		default:
		}
	}
}

// roundTrip sends a request on the link. While a function of the user runs, it gives the request a
// context that can end, because [Client.Close] waits for the function: a server in this process
// then runs the handler on a goroutine of its own, and Close can end the call.
func (l *link) roundTrip(ctx context.Context, req *mcp.Request) (*mcp.Response, error) {
	if ctx.Done() == nil && l.owner.callbacks.Load() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	return l.transport.RoundTrip(ctx, req)
}

// goUntilClose runs f on a goroutine that Close waits for. It returns false if the client is
// closed.
func (c *connection) goUntilClose(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Status == Closed {
		return false
	}
	c.goroutines.Go(f)
	return true
}

func (c *connection) closeConnection() error {
	c.mu.Lock()
	if c.state.Status != Closed {
		c.setState(State{Status: Closed})
	}
	c.endLifetime()
	l := c.current.Swap(nil)
	c.mu.Unlock()
	c.reportStates()
	var err error
	if l != nil {
		err = l.transport.Close()
	}
	c.goroutines.Wait()
	return err
}

// rememberedEra returns the remembered verdict on the server's era, or "" if the revision is
// pinned.
func (c *connection) rememberedEra() mcp.Revision {
	if c.options.Revision != "" {
		return ""
	}
	return c.options.Verdicts.Lookup(c.dialer.Endpoint())
}

func (c *connection) forgetEra() { c.options.Verdicts.Remember(c.dialer.Endpoint(), "") }

// mayBeWrongEra reports whether a failure to connect may come from a wrong assumption about the
// server's era: the server answered with an error, or closed the connection.
func mayBeWrongEra(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) || errors.Is(err, mcp.ErrConnection)
}

// dropIfWrongRevision drops the link if the server refused the revision of a request. It reports
// whether it did; the caller may then try again over a new link.
func (c *connection) dropIfWrongRevision(l *link, err error) bool {
	var answered *mcp.Error
	if !errors.As(err, &answered) || answered.Code != mcp.CodeUnsupportedProtocolVersion {
		return false
	}
	if c.restart.Max == 0 || c.options.Revision != "" {
		return false // dialing again is impossible, or would change nothing
	}
	c.forgetEra()
	c.linkLost(l, fmt.Errorf("%w: the server now speaks another revision: %w", mcp.ErrConnection, err))
	return true
}

// isRepeatable reports whether a request may be sent again after its connection was lost: it
// changes nothing at the server, or it has no second effect.
func isRepeatable(method string) bool {
	switch method {
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		return true
	}
	return mcpwire.Cacheable(method) && method != mcp.MethodReadResource
}
