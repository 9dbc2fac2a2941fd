// Package polling finds changes of resources that only their state can tell. It looks at them while
// clients are subscribed to them, and at no other time.
//
//	poller := polling.New(polling.Options{Interval: time.Minute, Look: readState, Changed: s.Updated})
//	s.Use(poller.Middleware)
package polling

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// maxResources bounds the resources that are polled. The acknowledgement of a subscription leaves
// out the others.
const maxResources = 64

// firstLooks bounds the time that a subscription waits for the first looks at its resources. The
// gateway waits 2 s for the acknowledgement of a subscription.
const firstLooks = time.Second

// maxLooks bounds the looks at the same time.
const maxLooks = 8

// lookTimeout bounds one look, because the others and Close wait for its end.
const lookTimeout = time.Minute

// Options configure a [Poller]. All fields are required.
type Options struct {
	// Interval is the time from the end of one round of looks to the beginning of the next.
	Interval time.Duration
	// Accepts reports whether the resource can be polled. The acknowledgement of a subscription
	// leaves out the others.
	Accepts func(uri string) bool
	// Look returns the state of a resource: a text that is not empty and changes with the resource.
	// known is the result of the last look, or "". After an error, the last state stays known. Look
	// is called concurrently, at most 8 times, and must return when ctx ends.
	Look func(ctx context.Context, uri, known string) (state string, err error)
	// Changed gets the URI of a resource that has changed, for example [server.Server.Updated].
	Changed func(uri string)
}

// Poller compares the states of the resources that clients are subscribed to.
type Poller struct {
	opts  Options
	turns chan struct{} // holds a value during each look

	mu        sync.Mutex
	resources map[string]*resource // by URI
	notBefore time.Time            // the next look
	stop      context.CancelFunc   // ends the rounds; nil without rounds
	rounds    sync.WaitGroup
	work      context.Context // ends with Close
	close     context.CancelFunc
}

// resource is a resource with subscribers.
type resource struct {
	subscribers int
	baseline    baseline
	state       string        // "" before the first success
	turn        chan struct{} // holds a value during a look
}

// baseline says how the next state of a resource is compared.
type baseline int

const (
	noBaseline     baseline = iota // no look has ended: the next state is the baseline
	failedBaseline                 // the first look has failed: the next state counts as a change
	knownBaseline                  // another state than the last one is a change
)

// New returns a poller without subscriptions.
func New(o Options) *Poller {
	work, end := context.WithCancel(context.Background())
	return &Poller{opts: o, turns: make(chan struct{}, maxLooks), resources: map[string]*resource{}, work: work, close: end}
}

// Close ends the polling, and waits for the end of the looks.
func (p *Poller) Close() {
	p.mu.Lock()
	p.close()
	p.stopRounds()
	p.mu.Unlock()
	p.rounds.Wait()
}

// Pause postpones all looks, if until is later than the end of an earlier pause.
func (p *Poller) Pause(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.notBefore) {
		p.notBefore = until
	}
}

// Middleware polls the resources of each subscription while it is open. It takes a first look
// before the subscription is acknowledged, so that later changes are noticed.
func (p *Poller) Middleware(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		var params mcp.ListenParams
		if req.Method != mcp.MethodListen || mcp.Decode(req.Params, &params) != nil {
			return next.ServeMCP(ctx, req) // which reports an error of the parameters
		}
		wanted := params.Notifications.ResourceSubscriptions
		if len(wanted) == 0 {
			return next.ServeMCP(ctx, req)
		}
		accepted := p.subscribe(wanted)
		defer p.unsubscribe(accepted)
		p.lookFirst(ctx, accepted)
		params.Notifications.ResourceSubscriptions = accepted
		encoded, err := mcp.Encode(&params)
		if err != nil {
			return nil, err
		}
		narrowed := *req
		narrowed.Params = encoded
		return next.ServeMCP(ctx, &narrowed)
	})
}

// subscribe returns the resources that are polled from now on. It starts the rounds with the first
// one.
func (p *Poller) subscribe(uris []string) (accepted []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uri := range uris {
		r := p.resources[uri]
		switch {
		case slices.Contains(accepted, uri), r == nil && len(p.resources) >= maxResources, !p.opts.Accepts(uri):
			continue
		case r == nil:
			r = &resource{turn: make(chan struct{}, 1)}
			p.resources[uri] = r
		}
		r.subscribers++
		accepted = append(accepted, uri)
	}
	if len(p.resources) > 0 && p.stop == nil && p.work.Err() == nil {
		ctx, stop := context.WithCancel(p.work)
		p.stop = stop
		p.rounds.Go(func() { p.runRounds(ctx) })
	}
	return accepted
}

// unsubscribe ends the rounds with the last resource.
func (p *Poller) unsubscribe(uris []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, uri := range uris {
		r := p.resources[uri]
		if r.subscribers--; r.subscribers == 0 {
			delete(p.resources, uri)
		}
	}
	if len(p.resources) == 0 {
		p.stopRounds()
	}
}

// stopRounds ends the rounds. The caller holds p.mu.
func (p *Poller) stopRounds() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// lookFirst looks at resources without a baseline, for a bounded time. After a look that took
// longer, the next success sets the baseline.
func (p *Poller) lookFirst(ctx context.Context, uris []string) {
	p.mu.Lock()
	if p.work.Err() != nil {
		p.mu.Unlock()
		return
	}
	var looks sync.WaitGroup // Close waits for them
	p.rounds.Add(1)
	defer p.rounds.Done()
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, firstLooks)
	defer cancel()
	defer context.AfterFunc(p.work, cancel)()
	for _, uri := range uris {
		if r, ok := p.find(uri); ok && r.baseline == noBaseline {
			looks.Go(func() { p.look(ctx, uri) })
		}
	}
	looks.Wait()
}

func (p *Poller) runRounds(ctx context.Context) {
	timer := time.NewTimer(p.opts.Interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for _, uri := range p.subscribed() {
			p.look(ctx, uri)
		}
		timer.Reset(p.opts.Interval)
	}
}

// subscribed returns the URIs of the polled resources, sorted.
func (p *Poller) subscribed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.resources))
}

// find returns the resource. ok is false if it has no subscribers.
func (p *Poller) find(uri string) (r resource, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.resources[uri]; found != nil {
		return *found, true
	}
	return resource{}, false
}

// look compares a resource with its last state, unless there is a pause.
func (p *Poller) look(ctx context.Context, uri string) {
	r, ok := p.find(uri)
	if !ok {
		return
	}
	for _, turns := range []chan struct{}{r.turn, p.turns} {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-ctx.Done():
			return
		}
	}
	before, ok := p.find(uri)
	if !ok || ctx.Err() != nil {
		return
	}
	if p.isPaused() {
		p.setFailed(uri)
		return
	}
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	state, err := p.opts.Look(limited, uri, before.state)
	switch {
	case err == nil && p.setState(uri, state):
		p.opts.Changed(uri)
	case err != nil && ctx.Err() == nil:
		p.setFailed(uri)
	}
}

func (p *Poller) isPaused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.notBefore)
}

// setState reports whether the state counts as a change.
func (p *Poller) setState(uri, state string) (changed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.resources[uri]
	if r == nil {
		return false
	}
	changed = r.baseline != noBaseline && r.state != state
	r.baseline, r.state = knownBaseline, state
	return changed
}

// setFailed notes a look in vain.
func (p *Poller) setFailed(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.resources[uri]; r != nil && r.baseline == noBaseline {
		r.baseline = failedBaseline
	}
}
