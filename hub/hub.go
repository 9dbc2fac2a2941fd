package hub

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure a [Hub]. The zero value is ready for use.
type Options struct {
	// Info is how the hub introduces itself to upstreams. An empty Name means dowel.
	Info mcp.Implementation
	// Cache keeps the upstreams' lists between runs, for servers that start lazily. nil keeps
	// nothing.
	Cache Cache
	// MinBackoff and MaxBackoff limit the wait before another attempt to start a server. The wait
	// begins at MinBackoff and doubles. 0 means 500 ms and 1 minute.
	MinBackoff, MaxBackoff time.Duration
	// PingInterval is how often the hub checks an idle connection. 0 means 30 seconds; negative
	// means never.
	PingInterval time.Duration
	// ClientIdle ends the connection of a single client after this long without a call: see
	// [Sharing]. 0 means 10 minutes.
	ClientIdle time.Duration
	// DialContext returns the context for the dial of a connection to an upstream, for example with
	// a trace. It may be called concurrently. nil means the hub's own context.
	DialContext func(ctx context.Context, upstream string) context.Context
	// Watch watches the files of [Policy].WatchPaths: files, folders and patterns, from its return
	// until stop is called. It calls changed after each change, with a cause such as "main.js was
	// modified", and failed when it cannot watch a path. stop waits for running calls of changed
	// and failed. If Watch is nil, those paths have no effect.
	Watch func(paths []string, changed func(cause string), failed func(error)) (stop func())
	// Logger receives messages that belong to no upstream. nil means [slog.Default].
	Logger *slog.Logger
}

// Cache stores the lists of upstreams between runs. Its methods are called concurrently.
type Cache interface {
	// Load returns the lists that were saved for a server with that fingerprint. ok is false if
	// none were.
	Load(name, fingerprint string) (offer []byte, ok bool)
	// Save stores the lists of a server, as bytes that only the hub reads. It replaces lists of
	// other fingerprints.
	Save(name, fingerprint string, offer []byte)
}

// setDefaults replaces zero values.
func (o *Options) setDefaults() {
	o.MinBackoff = cmp.Or(o.MinBackoff, 500*time.Millisecond)
	o.MaxBackoff = max(cmp.Or(o.MaxBackoff, time.Minute), o.MinBackoff)
	o.PingInterval = cmp.Or(o.PingInterval, 30*time.Second)
	o.ClientIdle = cmp.Or(o.ClientIdle, 10*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Hub runs a set of upstreams. It is safe for concurrent use.
type Hub struct {
	opts Options
	bus  eventBus

	applying sync.Mutex // held by Apply, also while it waits for logs

	mu        sync.Mutex
	upstreams map[string]*Upstream
	order     []*Upstream
	closed    bool
	removals  sync.WaitGroup // of upstreams that are ending

	catalog     catalogCache
	runnerSlots chan struct{} // holds a token for each package runner that is starting
	dials       dialContexts
}

// New returns a hub without upstreams: [Hub.Apply] adds them. nil options mean the defaults. New
// copies the options.
func New(opts *Options) *Hub {
	h := &Hub{upstreams: map[string]*Upstream{}, runnerSlots: make(chan struct{}, runnerSlots)}
	if opts != nil {
		h.opts = *opts
	}
	h.opts.setDefaults()
	h.bus.listeners = map[*listener]struct{}{}
	h.catalog.hub = h
	return h
}

// Apply makes definitions the hub's set of servers. It ends upstreams that are missing from the
// set, restarts those with another fingerprint, starts new ones, and leaves the others running. It
// does not wait. cause says why in a few words, such as "the file dowel.json changed"; states and
// events carry it. Of several definitions with the same name only the first counts.
func (h *Hub) Apply(definitions []Definition, cause string) {
	h.applying.Lock()
	defer h.applying.Unlock()
	for _, u := range h.applyPrepared(h.prepareAll(definitions), cause) {
		u.compareDefinitions()
	}
}

// Upstreams returns the upstreams in the order of their definitions.
func (h *Hub) Upstreams() []*Upstream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// Upstream returns the upstream of a name, or nil.
func (h *Hub) Upstream(name string) *Upstream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.upstreams[name]
}

// Settle waits until no upstream is starting. It reports false if ctx ends first.
func (h *Hub) Settle(ctx context.Context) bool {
	for _, u := range h.Upstreams() {
		if !u.awaitSettled(ctx) {
			return false
		}
	}
	return true
}

// AwaitLists waits until the lists of all upstreams that start for the first time are known, or
// their first attempt has failed. It reports false if ctx ends first.
func (h *Hub) AwaitLists(ctx context.Context) bool {
	if !isPending(h.Catalog()) {
		return true
	}
	for _, u := range h.Upstreams() {
		if !u.awaitState(ctx, func() bool { return u.state.Status != Starting || u.state.Attempt > 0 || u.lists != nil }) {
			return false
		}
	}
	return true
}

// Close ends all upstreams with everything they have started, and waits for it. It always returns
// nil and may be called more than once.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	all := slices.Clone(h.order)
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, u := range all {
		wg.Go(func() { u.remove("dowel ends") })
	}
	wg.Wait()
	h.removals.Wait()
	return nil
}
