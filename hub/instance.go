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

// instance is one connection to an upstream, of all or of one client.
type instance struct {
	upstream *Upstream
	client   *client.Client
	lost     chan error // told once
	made     string     // the fingerprint of the definition that it was made from
	opened   chan struct{}
	left     chan struct{} // closed when one that is a client's own has to make room
	err      error         // of opening; read after opened is closed

	lingers  time.Duration
	replaced context.Context // ends when another connection takes the place of this one
	replace  context.CancelFunc

	mu    sync.Mutex
	used  time.Time
	calls int
	done  chan struct{} // made by linger, and closed when there is no call
}

func newInstance() *instance {
	in := &instance{used: time.Now()}
	in.replaced, in.replace = context.WithCancel(context.Background())
	return in
}

// open connects. The instance lives until close, or until it is lost.
func (u *Upstream) open(ctx context.Context) (*instance, error) {
	u.mu.Lock()
	d := u.def
	u.mu.Unlock()
	in := newInstance()
	in.upstream, in.made, in.lingers, in.lost = u, d.Fingerprint, d.Linger, make(chan error, 1)
	options := u.options(d)
	options.OnState = in.changed
	c, err := client.Dial(ctx, u.target(d), &options)
	if err != nil {
		return nil, err
	}
	in.client = c
	return in, nil
}

// options are those of a connection: the hub's own in what it does itself.
func (u *Upstream) options(d Definition) client.Options {
	o := d.Options
	o.Name = d.Name
	o.Info = u.hub.opts.Info
	o.Answers.Handler = asked{u}
	o.Answers.Elicit, o.Answers.Sample, o.Answers.Roots, o.Answers.Requests = nil, nil, nil, nil
	o.Answers.Capabilities = bridged.And(o.Answers.Capabilities)
	o.Restart = client.Restart{Max: -1} // run does it
	o.NoCache, o.NoOutputCheck = true, true
	if _, ok := command(d.Target); ok {
		o.Wire.Tap = u.log.tap(o.Wire.Tap)
	}
	if o.Logger == nil {
		o.Logger = u.hub.opts.Logger.With("server", d.Name)
	}
	return o
}

// target is that of the definition, with the server's stderr where it is shown.
func (u *Upstream) target(d Definition) any {
	c, ok := command(d.Target)
	if !ok {
		return d.Target
	}
	if c.Stderr == nil {
		c.Stderr = &u.log
	}
	return c
}

// command returns the command that a target is; false where it is none.
func command(target any) (stdio.Command, bool) {
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

// changed hears of the connection's states.
func (in *instance) changed(s client.State) {
	if s.Status != client.Failed && s.Status != client.Lost {
		return
	}
	select {
	case in.lost <- s.Err:
	default:
	}
}

// enter counts a call, and returns what ends it.
func (in *instance) enter() func() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	in.used = time.Now()
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.calls--
		in.used = time.Now()
		if in.calls == 0 && in.done != nil {
			close(in.done)
			in.done = nil
		}
	}
}

// errReplaced is why a subscription ends whose server is restarted, or becomes another one.
var errReplaced = fmt.Errorf("%w: another one takes its place", mcp.ErrConnection)

// linger waits until the calls in flight are done, for a while, or until the upstream ends. Subscriptions are ended.
func (in *instance) linger(life context.Context) {
	in.replace()
	in.mu.Lock()
	done := make(chan struct{})
	if in.calls == 0 {
		close(done)
	} else {
		in.done = done
	}
	in.mu.Unlock()
	timer := time.NewTimer(in.lingers)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-life.Done():
	}
}

// idle returns how long there has been no call; 0 while there is one.
func (in *instance) idle() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.calls > 0 {
		return 0
	}
	return time.Since(in.used)
}

// leave makes a connection end that is a client's own.
func (in *instance) leave() { close(in.left) }

// errIdle is why a server has been stopped that nobody needed.
var errIdle = errors.New("nobody has called it for a while; the next call starts it")

// connect opens the connection that all share, and returns why it has ended.
func (u *Upstream) connect(ctx context.Context, began time.Time) error {
	in, err := u.open(ctx)
	if err != nil {
		return err
	}
	defer u.leave(ctx, in)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer u.withdraw()
	f := u.follow(ctx, in, &work)
	if err := u.learn(ctx, in); err != nil {
		return err
	}
	u.ready(ctx, in, time.Since(began))
	close(f.learned)
	return u.attend(ctx, in)
}

// leave closes a connection that is of no use any more: at once, unless its calls in flight may go on beside the next.
func (u *Upstream) leave(ctx context.Context, in *instance) {
	var ordered *order
	if in.lingers == 0 || !errors.As(context.Cause(ctx), &ordered) {
		in.client.Close()
		return
	}
	u.own.Go(func() {
		in.linger(u.life)
		in.client.Close()
	})
}

// withdraw takes the connection of all away from calls: one that is being closed is of no use to them.
func (u *Upstream) withdraw() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.main = nil
}

// ready makes in the connection of all, unless it is to be ended already.
func (u *Upstream) ready(ctx context.Context, in *instance, took time.Duration) {
	server := in.client.ServerInfo()
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	u.main = in
	u.info = Info{
		Server: server, Revision: in.client.Revision(), Instructions: in.client.Instructions(),
		Capabilities: in.client.Capabilities(), Took: took,
	}
	u.enter(State{Status: Ready, Cause: fmt.Sprintf("connected in %v", took.Round(time.Millisecond)), Attempt: u.state.Attempt})
	if cause := u.takeNoted(); cause != "" {
		u.order(cause)
	}
}

// attend waits until the connection is lost, or is of no use any more, and returns why.
func (u *Upstream) attend(ctx context.Context, in *instance) error {
	look := time.NewTimer(u.look())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-in.lost:
			return err
		case <-look.C:
		}
		if limit := u.Definition().IdleStop; limit > 0 && in.idle() >= limit && u.unused(limit) {
			return errIdle
		}
		if err := u.ping(ctx, in); err != nil {
			return err
		}
		u.refresh(ctx, in)
		look.Reset(u.look())
	}
}

// look returns how long to wait before looking at the connection again.
func (u *Upstream) look() time.Duration {
	often := u.hub.opts.Ping
	if often < 0 {
		often = time.Hour
	}
	if limit := u.Definition().IdleStop; limit > 0 {
		often = min(often, max(limit/4, 10*time.Millisecond))
	}
	return often
}

// pingLimit is how long a server may take for a pong, while it has nothing else to do.
const pingLimit = 10 * time.Second

// ping tries an idle connection: with a ping, where its era has them, else by asking a server over HTTP who it is. That one that
// was started has ended is noticed without.
func (u *Upstream) ping(ctx context.Context, in *instance) error {
	every, method := u.hub.opts.Ping, mcp.MethodPing
	if in.client.Revision().Modern() {
		method = mcp.MethodDiscover
		if !remote(u.Definition().Target) {
			return nil
		}
	}
	if every < 0 || in.idle() < every/2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	_, err := in.client.RoundTrip(ctx, &mcp.Request{Method: method})
	var answered *mcp.Error
	switch {
	case err == nil, errors.As(err, &answered):
		return nil // an error is a sign of life too
	case in.idle() == 0:
		return nil // it has other things to do now
	}
	return fmt.Errorf("it did not answer a ping within %v: %w", pingLimit, err)
}

// remote reports whether a target is a URL.
func remote(target any) bool {
	switch target.(type) {
	case string, streamable.URL, sse.URL:
		return true
	}
	return false
}
