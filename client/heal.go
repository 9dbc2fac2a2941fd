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

// stable is how long a connection must hold for its loss to begin a new row of attempts.
const stable = time.Minute

func (r Restart) complete() Restart {
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
	once    bool // it cannot be dialed again
	starts  bool // it is a command
	restart Restart
	connect time.Duration

	answer  mcp.Handler            // takes what a legacy server asks
	notify  func(mcp.Notification) // takes what belongs to no call
	reset   func()                 // forgets what was learned over a connection that is lost
	onState func(State)

	live   atomic.Pointer[link]   // nil unless Ready
	server atomic.Pointer[Server] // of the last link
	life   context.Context        // ends with Close
	end    context.CancelFunc
	kick   chan struct{} // cuts the wait for the next attempt short
	work   sync.WaitGroup

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed when the state changes
	untold  []State
	telling bool
	tries   int // attempts in this row
}

// link is one transport, and what it is given as [mcp.Inbound].
type link struct {
	owner     *connection
	transport mcp.Transport
	server    Server
	since     time.Time
	err       error // why it was lost; guarded by owner.mu
}

func (l *link) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return l.owner.answer.ServeMCP(ctx, req)
}

func (l *link) Notify(n mcp.Notification) { l.owner.notify(n) }

func (l *link) Down(err error) { l.owner.lost(l, err) }

// open connects once; twice where what was remembered of the server's era proves wrong.
func (c *connection) open(ctx context.Context) error {
	ctx, cancel := c.bounded(ctx, 0)
	defer cancel()
	verdict := c.verdict()
	l, err := c.dial(ctx, verdict != "")
	if err != nil && verdict != "" && wrongEra(err) && ctx.Err() == nil {
		c.forget()
		l, err = c.dial(ctx, false)
	}
	if err != nil {
		return overdue(ctx, err)
	}
	return c.adopt(l)
}

// limit returns which of the two limits holds for reaching the server.
func (c *connection) limit(connect, start time.Duration) time.Duration {
	if c.starts && start != 0 {
		return start
	}
	return connect
}

// bounded returns ctx with the limit for connecting.
func (c *connection) bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		limit = c.connect
	}
	if limit < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, &TimeoutError{Kind: TimeoutConnect, After: limit})
}

// patient reports whether the time since a moment is within the limit for connecting.
func (c *connection) patient(since time.Time, limit time.Duration) bool {
	if limit == 0 {
		limit = c.connect
	}
	return limit < 0 || time.Since(since) < limit
}

func (c *connection) dial(ctx context.Context, strict bool) (*link, error) {
	l := &link{owner: c}
	t, err := c.dialer.Dial(ctx, l, c.options)
	if err != nil {
		return nil, err
	}
	l.transport = t
	if err := l.greet(ctx, strict); err != nil {
		t.Close()
		return nil, err
	}
	return l, nil
}

// adopt makes the link the one that calls use.
func (c *connection) adopt(l *link) error {
	c.mu.Lock()
	err := l.err
	if c.state.Status == Closed {
		err = mcp.ErrClosed
	}
	if err == nil {
		l.since = time.Now()
		c.server.Store(&l.server)
		c.live.Store(l)
		c.set(State{Status: Ready, Attempt: c.tries})
	}
	c.mu.Unlock()
	if err != nil {
		l.transport.Close()
		return err
	}
	c.announce()
	return nil
}

// lost is called when a link has failed, at any time after its dial began.
func (c *connection) lost(l *link, err error) {
	c.mu.Lock()
	defer c.announce()
	defer c.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = connectionError(err)
	if !c.live.CompareAndSwap(l, nil) {
		return
	}
	if time.Since(l.since) >= stable {
		c.tries = 0
	}
	c.reset()
	wait, again := c.next(l.err)
	c.work.Go(func() { c.restore(l, wait, again) })
}

// restore closes the lost link, which may not be done where its loss is reported, and dials until there is a new one.
func (c *connection) restore(l *link, wait time.Duration, again bool) {
	l.transport.Close() // what it has to say is in l.err
	c.redial(wait, again)
}

func (c *connection) redial(wait time.Duration, again bool) {
	for again && sleep(c.life, wait, c.kick) {
		c.enter(State{Status: Connecting, Attempt: c.present().Attempt})
		err := c.open(c.life)
		if err == nil {
			return
		}
		c.mu.Lock()
		wait, again = c.next(err)
		c.mu.Unlock()
		c.announce()
	}
}

// next enters Lost or, where the attempts are used up, Failed; c.mu is held.
func (c *connection) next(err error) (wait time.Duration, again bool) {
	if c.state.Status == Closed {
		return 0, false
	}
	if c.tries >= c.restart.Max {
		c.set(State{Status: Failed, Err: gaveUp(c.tries, err), Attempt: c.tries})
		return 0, false
	}
	c.tries++
	wait = backoff{c.restart.Base, c.restart.Cap}.delay(c.tries)
	c.set(State{Status: Lost, Err: err, Attempt: c.tries, Next: time.Now().Add(wait)})
	return wait, true
}

// acquire returns the link to use, and waits for one within the limit for connecting.
func (c *connection) acquire(ctx context.Context, limit time.Duration) (*link, error) {
	if l := c.live.Load(); l != nil {
		return l, nil
	}
	bound, cancel := c.bounded(ctx, limit)
	defer cancel()
	for {
		c.mu.Lock()
		l, state, changed := c.live.Load(), c.state, c.changed
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
			return nil, unavailable(context.Cause(bound), state)
		}
	}
}

// Reconnect drops the connection, if there is one, and dials anew at once, with a new row of attempts. It returns when
// the client is ready, has failed, or ctx has ended; the attempts go on in the last case.
func (c *Client) Reconnect(ctx context.Context) error {
	if c.conn.once {
		return errors.New("this connection was made by the caller of Dial and cannot be made again")
	}
	c.conn.again()
	_, err := c.conn.acquire(ctx, 0)
	return err
}

var errReconnect = fmt.Errorf("%w: a new one was asked for", mcp.ErrConnection)

func (c *connection) again() {
	if l := c.live.Load(); l != nil {
		c.lost(l, errReconnect)
	}
	c.mu.Lock()
	defer c.announce()
	defer c.mu.Unlock()
	c.tries = 0
	switch c.state.Status {
	case Failed:
		c.tries = 1
		c.set(State{Status: Lost, Err: c.state.Err, Attempt: c.tries, Next: time.Now()})
		c.work.Go(func() { c.redial(0, true) })
	case Lost:
		select {
		case c.kick <- struct{}{}:
		default:
		}
	}
}

// spawn runs f until Close, which waits for it; it reports false where the client is closed already.
func (c *connection) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Status == Closed {
		return false
	}
	c.work.Go(f)
	return true
}

func (c *connection) close() error {
	c.mu.Lock()
	if c.state.Status != Closed {
		c.set(State{Status: Closed})
	}
	c.end()
	l := c.live.Swap(nil)
	c.mu.Unlock()
	c.announce()
	var err error
	if l != nil {
		err = l.transport.Close()
	}
	c.work.Wait()
	return err
}

// verdict returns what is remembered of the server's era; empty where the revision is pinned.
func (c *connection) verdict() mcp.Revision {
	if c.options.Revision != "" {
		return ""
	}
	return c.options.Verdicts.Lookup(c.dialer.Endpoint())
}

func (c *connection) forget() { c.options.Verdicts.Remember(c.dialer.Endpoint(), "") }

// wrongEra reports whether a failure to connect may come from a wrong idea of the server's era: it spoke, or hung up.
func wrongEra(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) || errors.Is(err, mcp.ErrConnection)
}

// distrust drops a link over which the server refuses the revision that it is believed to speak.
func (c *connection) distrust(l *link, err error) bool {
	var answered *mcp.Error
	if !errors.As(err, &answered) || answered.Code != mcp.CodeUnsupportedProtocolVersion {
		return false
	}
	if c.restart.Max == 0 || c.options.Revision != "" {
		return false // it cannot be dialed again, or not otherwise
	}
	c.forget()
	c.lost(l, fmt.Errorf("%w: the server speaks another revision by now: %w", mcp.ErrConnection, err))
	return true
}

// repeatable reports whether a request changes nothing at the server, so that it may be sent again when its connection
// was lost.
func repeatable(method string) bool {
	return mcp.Cacheable(method) && method != mcp.MethodReadResource
}
