package daemon

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// otherStartWait is how long a list waits for the running daemon. It is longer than the gateway's
// own default of 3 seconds, because that daemon waits for its servers too.
const otherStartWait = 9 * time.Second

// Proxy is a gateway over one server: the running daemon, in another process or in this one.
type Proxy struct {
	options Options
	// Running is the client for the control API of the running daemon.
	Running *control.Client
	hub     *hub.Hub
	gateway *gateway.Gateway
	daemon  *Daemon                // nil while the daemon is another process
	serving atomic.Pointer[Daemon] // equals daemon; dials of the hub read it
	calls   *callCounter           // from this process's client to daemon; nil if daemon is nil

	cancelFollow context.CancelFunc
	background   sync.WaitGroup
}

// Join finds the running daemon and follows it until [Proxy.Close]. If no daemon runs, this process
// becomes the daemon, now or later. The caller must call [Proxy.Close].
func Join(ctx context.Context, o Options) (*Proxy, error) {
	p := &Proxy{options: o, Running: control.NewClient(o.Socket)}
	p.hub = hub.New(&hub.Options{Logger: o.Logger, MinBackoff: retryPause, MaxBackoff: 10 * retryPause, DialContext: p.recordClient})
	if err := p.findOrStart(ctx); err != nil {
		return nil, err
	}
	p.gateway = gateway.New(p.hub, &gateway.Options{Logger: o.Logger, StartWait: otherStartWait})
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	p.cancelFollow = stop
	p.background.Go(func() { p.followDaemon(following) })
	return p, nil
}

// NewProxy returns a proxy for one handler that never changes. It uses no daemon.
func NewProxy(ctx context.Context, other mcp.Handler) *Proxy {
	h := hub.New(&hub.Options{})
	p := &Proxy{hub: h, gateway: gateway.New(h, &gateway.Options{StartWait: -1}), cancelFollow: func() {}}
	p.setTarget(hub.Definition{Target: other, Fingerprint: "1"})
	h.Settle(ctx)
	return p
}

// Handler returns a handler for all servers of the running daemon. It stays valid when another
// process becomes the daemon.
func (p *Proxy) Handler() mcp.Handler { return p.gateway.Relay(ProxyName) }

// Close ends everything that runs in this process. A daemon in another process is not affected.
func (p *Proxy) Close(ctx context.Context) {
	p.cancelFollow()
	p.background.Wait()
	p.gateway.Close()
	p.hub.Close()
	if p.daemon != nil {
		p.daemon.Stop(ctx)
	}
}

// findOrStart connects to the running daemon, or makes this process the daemon.
func (p *Proxy) findOrStart(ctx context.Context) error {
	err := p.takeOver("dowel begins")
	if !errors.Is(err, control.ErrRunning) {
		return err
	}
	if o := p.options; o.ConfigGiven || o.Address != "" || o.ToolSearch && !o.Stdio {
		o.Warn("dowel is running already: the other flags are ignored; dowel status shows its settings")
	}
	p.options.Address = ""   // ignored too if this process becomes the daemon later
	if !p.findRunning(ctx) { // the other daemon is ending
		p.setTarget(p.remoteDefinition(0))
	}
	return nil
}

// ProxyName is the name of the daemon in the hub of a [Proxy].
const ProxyName = "dowel"

// retryPause is the mean time between searches for a running daemon, retryPauseAfterError the time
// after this process failed to become the daemon.
const (
	retryPause           = 200 * time.Millisecond
	retryPauseAfterError = 10 * time.Second
)

// followDaemon keeps the hub connected to the running daemon until ctx ends.
func (p *Proxy) followDaemon(ctx context.Context) {
	for ctx.Err() == nil {
		pause := retryPause
		switch {
		case p.daemon != nil:
			p.runHere(ctx)
		case p.findRunning(ctx):
			for range p.Running.Events(ctx) { // the stream ends with the daemon
			}
			p.setTarget(p.remoteDefinition(0))
		default:
			if err := p.takeOver("the running dowel has ended"); err != nil && !errors.Is(err, control.ErrRunning) {
				p.options.Warn("dowel has ended, and this process cannot replace it: %v", err)
				pause = retryPauseAfterError
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // random, so that waiting processes do not collide
		case <-ctx.Done():
		}
	}
}

// findRunning connects to a daemon in another process. It returns false if no daemon answers.
func (p *Proxy) findRunning(ctx context.Context) bool {
	s, err := p.Running.Status(ctx)
	if err != nil || s.Ending {
		return false
	}
	p.setTarget(p.remoteDefinition(s.PID))
	return true
}

// takeOver makes this process the daemon. It fails with [control.ErrRunning] if another daemon
// runs.
func (p *Proxy) takeOver(cause string) error {
	place, err := control.Listen(p.options.Socket)
	if err != nil {
		return err
	}
	d, err := startDaemon(context.Background(), place, p.options, cause)
	if err != nil {
		return err
	}
	p.daemon, p.calls = d, new(callCounter)
	p.serving.Store(d)
	counted := mcp.Chain(d.stdioHandler(), p.calls.count, NameClient(p.options.Client)) // with the daemon's extensions
	p.setTarget(hub.Definition{Target: counted, Origin: "this dowel", Fingerprint: "this process"})
	return nil
}

// runHere waits until another process wants to be the daemon, and hands over to it. It returns
// early if ctx ends. Calls that arrive during the handover wait for the next daemon.
func (p *Proxy) runHere(ctx context.Context) {
	select {
	case <-p.daemon.yielded:
	case <-ctx.Done():
		return
	}
	p.serving.Store(nil)
	p.setTarget(p.remoteDefinition(0)) // new calls go to the next daemon
	p.daemon.stopServing(ctx)
	p.calls.waitIdle(ShutdownTimeout)
	p.daemon.stopServers()
	p.daemon, p.calls = nil, nil
	for end := time.Now().Add(retryPauseAfterError); !p.findRunning(ctx) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(retryPause / 10)
	}
}

// setTarget makes d the only server of the hub. The calls of the previous one may finish.
func (p *Proxy) setTarget(d hub.Definition) {
	d.Name, d.Linger = ProxyName, ShutdownTimeout
	p.hub.Apply([]hub.Definition{d}, "it is the running dowel")
}

// remoteDefinition returns the definition of the daemon in process pid. 0 means the next daemon,
// in whatever process it runs. A header tells the daemon which client its calls come from.
func (p *Proxy) remoteDefinition(pid int) hub.Definition {
	me := func(context.Context) (http.Header, error) {
		header := http.Header{control.HeaderClient: {ProcessName()}}
		if p.options.Client != nil {
			header.Set(control.HeaderClient, p.options.Client())
		}
		if p.options.ToolSearch {
			header.Set(control.HeaderToolSearch, "true")
		}
		return header, nil
	}
	return hub.Definition{
		Target: remoteDialer{p.Running, streamable.URL{
			URL: p.Running.Gateway(), Client: p.Running.HTTP(), Header: me,
		}},
		Origin: fmt.Sprintf("the running dowel, process %d", pid), Fingerprint: fmt.Sprintf("process %d", pid),
	}
}

// remoteDialer connects to a daemon in another process. It waits until a daemon runs, because one
// may have ended before the next begins.
type remoteDialer struct {
	running *control.Client
	streamable.URL
}

// Dial implements [transport.Dialer].
func (d remoteDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	for {
		if s, err := d.running.Status(ctx); err == nil && !s.Ending {
			return d.URL.Dial(ctx, in, opts)
		}
		select {
		case <-time.After(retryPause / 4):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// callCounter counts the calls of a handler that are in flight.
type callCounter struct{ calls atomic.Int64 }

// count is an [mcp.Middleware].
func (c *callCounter) count(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		c.calls.Add(1)
		defer c.calls.Add(-1)
		return next.ServeMCP(ctx, req)
	})
}

// ProcessName returns the name of this process as a client of the running dowel.
func ProcessName() string { return fmt.Sprintf("process %d", os.Getpid()) }

// waitIdle waits up to limit until no call is in flight.
func (c *callCounter) waitIdle(limit time.Duration) {
	for end := time.Now().Add(limit); c.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(retryPause / 20)
	}
}

// Instructions fetches the current instructions from the running daemon. The proxy's own gateway
// only has the instructions from the time when it connected.
func (p *Proxy) Instructions(ctx context.Context) (string, error) {
	u := p.hub.Upstream(ProxyName)
	if u == nil {
		return "", control.ErrNotRunning
	}
	res, err := u.RoundTrip(ctx, hub.Caller{}, &mcp.Request{Method: mcp.MethodDiscover})
	if err != nil {
		return "", err
	}
	var d mcp.DiscoverResult
	err = mcp.Decode(res.Raw, &d)
	return d.Instructions, err
}
