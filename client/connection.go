package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Restart says how a lost connection is restored: by dialing again, which starts a server that was started anew.
type Restart struct {
	// Max bounds the attempts in a row; a connection that held for a minute begins a new row. 0: 5; negative: none.
	Max int
	// Base is the wait before the first attempt, doubled before each further one, up to Cap, and shortened at random by
	// up to half. 0: 250 ms and 30 s.
	Base, Cap time.Duration
}

// stableAfter is how long a connection must hold for its loss to begin a new row of attempts.
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
	dialer  transport.Dialer
	options transport.ClientOptions
	oneShot    bool // it cannot be dialed again
	isCommand  bool // it is a command
	restart Restart
	connectLimit time.Duration

	answer  mcp.Handler            // takes what a legacy server asks
	notify  func(mcp.Notification) // takes what belongs to no call
	reset   func()                 // forgets what was learned over a connection that is lost
	onState func(State)

	current   atomic.Pointer[link]   // nil unless Ready
	server atomic.Pointer[Server] // of the last link
	lifetime   context.Context        // ends with Close
	endLifetime    context.CancelFunc
	retryNow   chan struct{} // cuts the wait for the next attempt short
	goroutines   sync.WaitGroup

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed when the state changes
	unreported  []State
	reporting bool
	tries   int // attempts in this row
}

// link is one transport, and what it is given as [mcp.Inbound].
type link struct {
	owner     *connection
	transport mcp.Transport
	server    Server
	readySince     time.Time
	err       error // why it was lost; guarded by owner.mu
}

func (l *link) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return l.owner.answer.ServeMCP(ctx, req)
}

func (l *link) Notify(n mcp.Notification) { l.owner.notify(n) }

func (l *link) Down(err error) { l.owner.linkLost(l, err) }

// openLink connects once; twice where what was remembered of the server's era proves wrong.
func (c *connection) openLink(ctx context.Context) error {
	ctx, cancel := c.withConnectLimit(ctx, 0)
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

// reachLimit returns which of the two limits holds for reaching the server.
func (c *connection) reachLimit(connect, start time.Duration) time.Duration {
	if c.isCommand && start != 0 {
		return start
	}
	return connect
}

// withConnectLimit returns ctx with the limit for connecting.
func (c *connection) withConnectLimit(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		limit = c.connectLimit
	}
	if limit < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, &TimeoutError{Kind: TimeoutConnect, After: limit})
}

// withinLimit reports whether the time since a moment is within the limit for connecting.
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

// adoptLink makes the link the one that calls use.
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

// linkLost is called when a link has failed, at any time after its dial began.
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

// replaceLink closes the lost link, which may not be done where its loss is reported, and dials until there is a new one.
func (c *connection) replaceLink(l *link, wait time.Duration, again bool) {
	l.transport.Close() // what it has to say is in l.err
	c.redialLoop(wait, again)
}

func (c *connection) redialLoop(wait time.Duration, again bool) {
	for again && waitDelay(c.lifetime, wait, c.retryNow) {
		c.enterState(State{Status: Connecting, Attempt: c.currentState().Attempt})
		err := c.openLink(c.lifetime)
		if err == nil {
			return
		}
		c.mu.Lock()
		wait, again = c.scheduleRetry(err)
		c.mu.Unlock()
		c.reportStates()
	}
}

// scheduleRetry enters Lost or, where the attempts are used up, Failed; c.mu is held.
func (c *connection) scheduleRetry(err error) (wait time.Duration, again bool) {
	if c.state.Status == Closed {
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

// acquireLink returns the link to use, and waits for one within the limit for connecting.
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

// Reconnect drops the connection, if there is one, and dials anew at once, with a new row of attempts. It returns when
// the client is ready, has failed, or ctx has ended; the attempts go on in the last case.
func (c *Client) Reconnect(ctx context.Context) error {
	if c.conn.oneShot {
		return errors.New("this connection was made by the caller of Dial and cannot be made again")
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

// goUntilClose runs f until Close, which waits for it; it reports false where the client is closed already.
func (c *connection) goUntilClose(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Status == Closed {
		return false
	}
	c.goroutines.Go(f)
	return true
}

func (c *connection) close() error {
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

// rememberedEra returns what is remembered of the server's era; empty where the revision is pinned.
func (c *connection) rememberedEra() mcp.Revision {
	if c.options.Revision != "" {
		return ""
	}
	return c.options.Verdicts.Lookup(c.dialer.Endpoint())
}

func (c *connection) forgetEra() { c.options.Verdicts.Remember(c.dialer.Endpoint(), "") }

// mayBeWrongEra reports whether a failure to connect may come from a wrong idea of the server's era: it spoke, or hung up.
func mayBeWrongEra(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) || errors.Is(err, mcp.ErrConnection)
}

// dropIfWrongRevision drops a link over which the server refuses the revision that it is believed to speak.
func (c *connection) dropIfWrongRevision(l *link, err error) bool {
	var answered *mcp.Error
	if !errors.As(err, &answered) || answered.Code != mcp.CodeUnsupportedProtocolVersion {
		return false
	}
	if c.restart.Max == 0 || c.options.Revision != "" {
		return false // it cannot be dialed again, or not otherwise
	}
	c.forgetEra()
	c.linkLost(l, fmt.Errorf("%w: the server speaks another revision by now: %w", mcp.ErrConnection, err))
	return true
}

// isRepeatable reports whether a request changes nothing at the server, so that it may be sent again when its connection
// was lost.
func isRepeatable(method string) bool {
	return mcp.Cacheable(method) && method != mcp.MethodReadResource
}
