package streamable

import (
	"context"
	"sync"
)

// lifetime is the context of a transfer that nothing but an abort and the end of the carrier can
// end. Transfers reuse lifetimes, because a context that can be cancelled costs about ten
// allocations in net/http.
type lifetime struct {
	context.Context
	abort   context.CancelFunc
	release func() // gives it back to its pool; made once, since a function for each transfer would be an allocation
}

// lifetimePool holds lifetimes that no transfer uses. The zero value is empty. It is safe for
// concurrent use.
type lifetimePool struct {
	mu   sync.Mutex
	free []*lifetime
}

// takeLifetime returns a lifetime that ends with life.
func (p *lifetimePool) takeLifetime(life context.Context) *lifetime {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		l := p.free[n-1]
		p.free = p.free[:n-1]
		return l
	}
	l := &lifetime{}
	l.Context, l.abort = context.WithCancel(life)
	l.release = func() { p.putLifetime(l) }
	return l
}

// putLifetime makes a lifetime available again, unless it has ended or the pool is full.
func (p *lifetimePool) putLifetime(l *lifetime) {
	const maxFree = 64
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Err() != nil || len(p.free) == maxFree {
		l.abort()
		return
	}
	p.free = append(p.free, l)
}

// withLifetime returns a context that also ends with the carrier and with abort, and a function to
// call after its use.
func (c *carrier) withLifetime(ctx context.Context) (_ context.Context, abort, done func()) {
	if ctx.Done() == nil {
		l := c.lifetimes.takeLifetime(c.life)
		return carrierContext{l, ctx}, l.abort, l.release
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	return ctx, cancel, func() { stop(); cancel() }
}

// carrierContext has the values of one context and the end of a lifetime. It costs less than a
// context that waits for both.
type carrierContext struct {
	*lifetime
	values context.Context
}

func (l carrierContext) Value(key any) any {
	if v := l.values.Value(key); v != nil {
		return v
	}
	return l.lifetime.Value(key)
}
