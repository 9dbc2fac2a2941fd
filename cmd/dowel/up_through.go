package main

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

// through is a gateway over one server: the dowel that is running, which is another process or this one.
type through struct {
	options daemonOptions
	running *control.Client
	hub     *hub.Hub
	gateway *gateway.Gateway
	house   *house    // nil while another dowel is running
	calls   *inFlight // of this process's own client to house

	stop context.CancelFunc
	work sync.WaitGroup
}

// goThrough finds the dowel that is running, or makes it this process, and follows it until close.
func goThrough(ctx context.Context, o daemonOptions) (*through, error) {
	t := &through{
		options: o, running: control.NewClient(o.socket),
		hub: hub.New(hub.Options{Logger: o.logger, Base: lookAgain, Cap: 10 * lookAgain}),
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	t.gateway = gateway.New(t.hub, gateway.Options{Logger: o.logger, Wait: 3 * gateway.DefaultWait}) // the other one waits too
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	t.work.Go(func() { t.follow(following) })
	return t, nil
}

// newProxy returns a proxy for one handler, which stays the same.
func newProxy(ctx context.Context, other mcp.Handler) *through {
	h := hub.New(hub.Options{})
	t := &through{hub: h, gateway: gateway.New(h, gateway.Options{Wait: -1}), stop: func() {}}
	t.use(hub.Definition{Target: other, Fingerprint: "1"})
	h.Settle(ctx)
	return t
}

// handler is all servers, wherever they run at the moment.
func (t *through) handler() mcp.Handler { return t.gateway.Through(throughName) }

// close ends what runs in this process.
func (t *through) close(ctx context.Context) {
	t.stop()
	t.work.Wait()
	t.gateway.Close()
	t.hub.Close()
	if t.house != nil {
		t.house.moveOut(ctx)
	}
}

// begin finds the dowel that is running, or makes it this process.
func (t *through) begin(ctx context.Context) error {
	err := t.takeOver("dowel begins")
	if !errors.Is(err, control.ErrRunning) {
		return err
	}
	if o := t.options; o.chosen || o.address != "" || o.toolSearch {
		o.warn("a dowel is running already, and its servers are offered as it was told to: the other flags do not count")
	}
	t.options.address = "" // nor later
	if !t.look(ctx) {      // it is ending
		t.use(t.other(0))
	}
	return nil
}

const throughName = "dowel"

// lookAgain is how often it is looked for a dowel that is running, while there is none, and lookAgainLater where there could
// be one, but for an error.
const (
	lookAgain      = 200 * time.Millisecond
	lookAgainLater = 10 * time.Second
)

// follow keeps the hub's server the dowel that is running, until ctx ends.
func (t *through) follow(ctx context.Context) {
	for ctx.Err() == nil {
		pause := lookAgain
		switch {
		case t.house != nil:
			t.reside(ctx)
		case t.look(ctx):
			for range t.running.Events(ctx) { // until it ends
			}
			t.use(t.other(0))
		default:
			if err := t.takeOver("the dowel that was running has ended"); err != nil && !errors.Is(err, control.ErrRunning) {
				t.options.warn("this process cannot take the place of the dowel that has ended: %v", err)
				pause = lookAgainLater
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): // of several that wait for the same, one is the first
		case <-ctx.Done():
		}
	}
}

// look uses the dowel that runs as another process, if there is one.
func (t *through) look(ctx context.Context) bool {
	s, err := t.running.Status(ctx)
	if err != nil || s.Ending {
		return false
	}
	t.use(t.other(s.PID))
	return true
}

// takeOver makes this process the dowel that is running, unless there is one.
func (t *through) takeOver(cause string) error {
	place, err := control.Listen(t.options.socket)
	if err != nil {
		return err
	}
	h, err := moveIn(context.Background(), place, t.options, cause)
	if err != nil {
		return err
	}
	t.house, t.calls = h, &inFlight{Handler: h.served()}
	t.use(hub.Definition{Target: t.calls, Origin: "this dowel", Fingerprint: "this process"})
	return nil
}

// reside is the dowel that is running, until another wants to be it, or ctx ends. That one begins when this one's servers have
// ended; what is called meanwhile waits for it.
func (t *through) reside(ctx context.Context) {
	select {
	case <-t.house.yielded:
	case <-ctx.Done():
		return
	}
	t.use(t.other(0)) // what is called from now on
	t.house.closeDoors(ctx)
	t.calls.wait(patience)
	t.house.close()
	t.house, t.calls = nil, nil
	for end := time.Now().Add(lookAgainLater); !t.look(ctx) && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(lookAgain / 10)
	}
}

func (t *through) use(d hub.Definition) {
	d.Name, d.Linger = throughName, patience
	t.hub.Apply([]hub.Definition{d}, "it is the dowel that is running")
}

// other is the dowel that runs as a process; 0, as any that there is or will be. It tells the clients of this process and of
// others apart.
func (t *through) other(pid int) hub.Definition {
	me := http.Header{control.HeaderClient: {fmt.Sprintf("process %d", os.Getpid())}}
	return hub.Definition{
		Target: elsewhere{t.running, streamable.URL{
			URL: t.running.Gateway(), Client: t.running.HTTP(), Header: func(context.Context) (http.Header, error) { return me, nil },
		}},
		Origin: fmt.Sprintf("the dowel that runs as process %d", pid), Fingerprint: fmt.Sprintf("process %d", pid),
	}
}

// elsewhere is the dowel that runs as another process. It is waited for: meanwhile one ends and the next begins.
type elsewhere struct {
	running *control.Client
	streamable.URL
}

// Dial implements [transport.Dialer].
func (e elsewhere) Dial(ctx context.Context, in mcp.Inbound, opts transport.ClientOptions) (mcp.Transport, error) {
	for {
		if s, err := e.running.Status(ctx); err == nil && !s.Ending {
			return e.URL.Dial(ctx, in, opts)
		}
		select {
		case <-time.After(lookAgain / 4):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// inFlight counts what a handler is doing.
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

// wait waits until nothing is done any more, for a while.
func (f *inFlight) wait(limit time.Duration) {
	for end := time.Now().Add(limit); f.calls.Load() > 0 && time.Now().Before(end); {
		time.Sleep(lookAgain / 20)
	}
}
