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

// Options configure a [Hub]. The zero value is ready.
type Options struct {
	// Info is how upstreams are told who calls; where its Name is empty, dowel's own.
	Info mcp.Implementation
	// Cache keeps what upstreams offer from one run to the next, for those that are started lazily. nil: nothing is kept.
	Cache Cache
	// Base and Cap bound the waits between attempts to start a server: the first one is Base, each further one twice as
	// long. 0: 500 ms and a minute.
	Base, Cap time.Duration
	// Ping is how often an idle connection of an era that has pings is tried. 0: 30 seconds; negative: never.
	Ping time.Duration
	// InstanceIdle ends a connection that belongs to one client after so long without a call. 0: 10 minutes.
	InstanceIdle time.Duration
	// Watch watches the files of [Policy.WatchPaths]. nil: those paths have no effect.
	Watch WatchFunc
	// Logger takes what belongs to no upstream. nil: slog.Default.
	Logger *slog.Logger
}

// Cache keeps what upstreams offer. Its methods are called concurrently.
type Cache interface {
	// Load returns what was saved for a server with that fingerprint; ok is false if nothing was.
	Load(name, fingerprint string) (offer []byte, ok bool)
	Save(name, fingerprint string, offer []byte)
}

func (o *Options) complete() {
	o.Base = cmp.Or(o.Base, 500*time.Millisecond)
	o.Cap = max(cmp.Or(o.Cap, time.Minute), o.Base)
	o.Ping = cmp.Or(o.Ping, 30*time.Second)
	o.InstanceIdle = cmp.Or(o.InstanceIdle, 10*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// Hub is a set of upstreams. It is safe for concurrent use.
type Hub struct {
	opts Options
	bus  bus

	mu        sync.Mutex
	upstreams map[string]*Upstream
	order     []*Upstream
	closed    bool
	ending    sync.WaitGroup // upstreams that were removed

	catalog catalogue
}

// New returns a hub without upstreams: [Hub.Apply] adds them.
func New(opts ...Options) *Hub {
	h := &Hub{upstreams: map[string]*Upstream{}}
	if len(opts) > 1 {
		panic("hub: more than one options struct")
	}
	if len(opts) == 1 {
		h.opts = opts[0]
	}
	h.opts.complete()
	h.bus.listeners = map[*listener]struct{}{}
	h.catalog.hub = h
	return h
}

// Apply makes the definitions those of the hub. Upstreams that are not among them end, those whose fingerprint has changed
// are started again, new ones are started, and all others go on undisturbed. It does not wait for any of it. cause says in a
// few words why, such as "the file dowel.json changed". A name that comes twice counts once.
func (h *Hub) Apply(definitions []Definition, cause string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	kept := map[string]bool{}
	var order []*Upstream
	for _, d := range definitions {
		if kept[d.Name] {
			continue
		}
		kept[d.Name] = true
		order = append(order, h.put(d, cause))
	}
	for _, u := range h.order {
		if !kept[u.name] {
			delete(h.upstreams, u.name)
			h.ending.Go(func() { u.remove(cause) })
		}
	}
	moved := !slices.Equal(order, h.order)
	h.order = order
	if moved {
		h.catalog.invalidate()
	}
}

// put returns the upstream of a definition; h.mu is held.
func (h *Hub) put(d Definition, cause string) *Upstream {
	if u := h.upstreams[d.Name]; u != nil {
		u.redefine(d, cause)
		return u
	}
	u := newUpstream(h, d)
	h.upstreams[d.Name] = u
	u.start(cause)
	return u
}

// Upstreams returns the upstreams in the order of their definitions.
func (h *Hub) Upstreams() []*Upstream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.order)
}

// Upstream returns the upstream of that name, nil if there is none.
func (h *Hub) Upstream(name string) *Upstream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.upstreams[name]
}

// Settle waits until no upstream is starting, or ctx ends, and reports which it was.
func (h *Hub) Settle(ctx context.Context) bool {
	for _, u := range h.Upstreams() {
		if !u.settle(ctx) {
			return false
		}
	}
	return true
}

// Known waits until it is known of every upstream that is starting what it offers, or ctx ends, and reports which it was. It
// is quick where nothing is waited for.
func (h *Hub) Known(ctx context.Context) bool {
	if !h.Catalog().pending {
		return true
	}
	for _, u := range h.Upstreams() {
		if !u.wait(ctx, func() bool { return u.state.Status != Starting || u.state.Attempt > 0 || u.offer != nil }) {
			return false
		}
	}
	return true
}

// Close ends all upstreams, with what was started for them, and waits for that. It may be called more than once.
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
	h.ending.Wait()
	return nil
}
