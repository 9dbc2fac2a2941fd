package hub

import (
	"context"
	"sync"

	"github.com/dowel-mcp/dowel/internal/hublink"
)

// dialContexts are functions that other packages of this module have added to a hub, in addition to
// [Options].DialContext.
type dialContexts struct {
	mu   sync.Mutex
	last int
	all  map[int]func(ctx context.Context, upstream string) context.Context
}

func init() {
	hublink.AddDialContext = func(h any, change func(ctx context.Context, upstream string) context.Context) func() {
		return h.(*Hub).dials.addChange(change)
	}
}

// addChange adds a function until remove is called.
func (d *dialContexts) addChange(change func(ctx context.Context, upstream string) context.Context) (remove func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[int]func(ctx context.Context, upstream string) context.Context{}
	}
	d.last++
	id := d.last
	d.all[id] = change
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.all, id)
	}
}

// change returns the context of a dial.
func (d *dialContexts) change(ctx context.Context, upstream string) context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, change := range d.all {
		ctx = change(ctx, upstream)
	}
	return ctx
}
