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

// Proxy is a gateway over one server: the dowel that is running, which is another process or this one.
type Proxy struct {
	options Options
	Running *control.Client
	hub     *hub.Hub
	gateway *gateway.Gateway
	daemon  *Daemon   // nil while another dowel is running
	calls   *inFlight // of this process's own client to house

	cancelFollow context.CancelFunc
	work         sync.WaitGroup
}

// Join finds the running daemon, or makes this process the daemon if none runs, and follows it until [Proxy.Close].
func Join(ctx context.Context, o Options) (*Proxy, error) {
	t := &Proxy{
		options: o, Running: control.NewClient(o.Socket),
		hub: hub.New(&hub.Options{Logger: o.Logger, MinBackoff: retryPause, MaxBackoff: 10 * retryPause}),
	}
	if err := t.connect(ctx); err != nil {
		return nil, err
	}
	t.gateway = gateway.New(t.hub, &gateway.Options{Logger: o.Logger, StartWait: otherStartWait})
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.cancelFollow = stop
	t.work.Go(func() { t.follow(following) })
	return t, nil
}

// NewProxy returns a proxy for one handler that never changes, without a daemon.
func NewProxy(ctx context.Context, other mcp.Handler) *Proxy {
	h := hub.New(&hub.Options{})
	t := &Proxy{hub: h, gateway: gateway.New(h, &gateway.Options{StartWait: -1}), cancelFollow: func() {}}
	t.use(hub.Definition{Target: other, Fingerprint: "1"})
	h.Settle(ctx)
	return t
}

// Handler serves all servers of the running daemon, wherever it runs at the moment.
func (t *Proxy) Handler() mcp.Handler { return t.gateway.Relay(ProxyName) }

// Close ends everything that runs in this process. A daemon in another process is not affected.
func (t *Proxy) Close(ctx context.Context) {
	t.cancelFollow()
	t.work.Wait()
	t.gateway.Close()
	t.hub.Close()
	if t.daemon != nil {
		t.daemon.Stop(ctx)
	}
}

// connect finds the dowel that is running, or makes it this process.
func (t *Proxy) connect(ctx context.Context) error {
	err := t.takeOver("dowel begins")
	if !errors.Is(err, control.ErrRunning) {
		return err
	}
	if o := t.options; o.ConfigGiven || o.Address != "" || o.ToolSearch {
		o.Warn("a dowel is running already, and its servers are offered as it was told to: the other flags do not count")
	}
	t.options.Address = ""   // nor later
	if !t.findRunning(ctx) { // it is ending
		t.use(t.remote(0))
	}
	return nil
}

const ProxyName = "dowel"

// retryPause is how often it is looked for a dowel that is running, while there is none, and lookAgainLater where there could
// be one, but for an error.
const (
	retryPause           = 200 * time.Millisecond
	retryPauseAfterError = 10 * time.Second
)

// follow keeps the hub's server the dowel that is running, until ctx ends.
func (t *Proxy) follow(ctx context.Context) {
	for ctx.Err() == nil {
		pause := retryPause
		switch {
		case t.daemon != nil:
			t.runHere(ctx)
		case t.findRunning(ctx):
			for range t.Running.Events(ctx) { // until it ends
			}
			t.use(t.remote(0))
		default:
			if err := t.takeOver("the dowel that was running has ended"); err != nil && !errors.Is(err, control.ErrRunning) {
				t.options.Warn("this process cannot take the place of the dowel that has ended: %v", err)
				pause = retryPauseAfterError
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // of several that wait for the same, one is the first
		case <-ctx.Done():
		}
	}
}

// findRunning connects to a daemon in another process. It reports whether one runs.
func (t *Proxy) findRunning(ctx context.Context) bool {
	s, err := t.Running.Status(ctx)
	if err != nil || s.Ending {
		return false
	}
	t.use(t.remote(s.PID))
	return true
}

// takeOver makes this process the daemon. It fails with [control.ErrRunning] if another one runs.
func (t *Proxy) takeOver(cause string) error {
	place, err := control.Listen(t.options.Socket)
	if err != nil {
		return err
	}
	h, err := start(context.Background(), place, t.options, cause)
	if err != nil {
		return err
	}
	t.daemon, t.calls = h, &inFlight{Handler: h.handler()}
	t.use(hub.Definition{Target: t.calls, Origin: "this dowel", Fingerprint: "this process"})
	return nil
}

// runHere lets this process be the daemon until another process wants to be it or ctx ends. Calls that arrive during
// the change wait for the next daemon.
func (t *Proxy) runHere(ctx context.Context) {
	select {
	case <-t.daemon.yielded:
	case <-ctx.Done():
		return
	}
	t.use(t.remote(0)) // what is called from now on
	t.daemon.stopServing(ctx)
	t.calls.wait(ShutdownTimeout)
	t.daemon.release()
	t.daemon, t.calls = nil, nil
	for end := time.Now().Add(retryPauseAfterError); !t.findRunning(ctx) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(retryPause / 10)
	}
}

func (t *Proxy) use(d hub.Definition) {
	d.Name, d.Linger = ProxyName, ShutdownTimeout
	t.hub.Apply([]hub.Definition{d}, "it is the dowel that is running")
}

// remote is the dowel that runs as a process; 0, as any that there is or will be. It tells the clients of this process and of
// others apart.
func (t *Proxy) remote(pid int) hub.Definition {
	me := http.Header{control.HeaderClient: {fmt.Sprintf("process %d", os.Getpid())}}
	return hub.Definition{
		Target: remoteDialer{t.Running, streamable.URL{
			URL: t.Running.Gateway(), Client: t.Running.HTTP(), Header: func(context.Context) (http.Header, error) { return me, nil },
		}},
		Origin: fmt.Sprintf("the dowel that runs as process %d", pid), Fingerprint: fmt.Sprintf("process %d", pid),
	}
}

// remoteDialer is the dowel that runs as another process. It is waited for: meanwhile one ends and the next begins.
type remoteDialer struct {
	running *control.Client
	streamable.URL
}

// Dial implements [transport.Dialer].
func (e remoteDialer) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	for {
		if s, err := e.running.Status(ctx); err == nil && !s.Ending {
			return e.URL.Dial(ctx, in, opts)
		}
		select {
		case <-time.After(retryPause / 4):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// inFlight counts the calls of a handler.
type inFlight struct {
	mcp.Handler
	calls atomic.Int64
}

// ServeMCP implements [mcp.Handler].
func (f *inFlight) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	f.calls.Add(1)
	defer f.calls.Add(-1)
	return f.Handler.ServeMCP(ctx, req)
}

// wait waits until no call is in flight, up to limit.
func (f *inFlight) wait(limit time.Duration) {
	for end := time.Now().Add(limit); f.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(retryPause / 20)
	}
}

// Instructions fetches the current instructions from the running daemon. The gateway in front of it only knows
// those of the time when it connected.
func (t *Proxy) Instructions(ctx context.Context) (string, error) {
	u := t.hub.Upstream(ProxyName)
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
