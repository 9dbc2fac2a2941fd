package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of a server's lists.
const (
	maxPages = 1000
	maxItems = 20000 // of a kind
)

// learn reads what the server offers. A list that cannot be read to its end is what could be read of it, and its problem is
// kept; the error is that of a connection that is lost.
func (u *Upstream) learn(ctx context.Context, in *instance) error {
	o := &offer{says: in.client.Instructions()}
	var wg sync.WaitGroup
	var errs [kinds]error
	for k := range kinds {
		wg.Go(func() { errs[k] = o.readSoon(ctx, in, k) })
	}
	wg.Wait()
	for k, err := range errs {
		if err == nil {
			continue
		}
		if lost(err) || ctx.Err() != nil {
			return err
		}
		o.problems[k] = err.Error()
	}
	u.keep(ctx, in, o)
	return nil
}

func lost(err error) bool { return errors.Is(err, mcp.ErrConnection) || errors.Is(err, mcp.ErrClosed) }

// listing bounds the reading of one list: a server that answers everything else is of use without it.
const listing = 20 * time.Second

// readSoon is read within a bound.
func (o *offer) readSoon(ctx context.Context, in *instance, k Kind) error {
	bounded, cancel := context.WithTimeoutCause(ctx, listing, fmt.Errorf("%s: it was not answered within %v", kindTable[k].method, listing))
	defer cancel()
	return o.read(bounded, in, k)
}

// read reads one list of an offer that is being made.
func (o *offer) read(ctx context.Context, in *instance, k Kind) error {
	if !lists(in.client.Capabilities(), k) {
		return nil
	}
	cursor, seen := json.RawMessage(nil), map[string]bool{}
	for range maxPages {
		params := json.RawMessage(nil)
		if cursor != nil {
			params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
		}
		resp, err := in.client.RoundTrip(ctx, &mcp.Request{Method: kindTable[k].method, Params: params})
		if none(err) && k == Template {
			return nil
		}
		if err != nil {
			return err
		}
		if resp.Type != mcp.ResultComplete {
			return fmt.Errorf("%s: its result is of type %s", kindTable[k].method, resp.Type)
		}
		if o.told[k] == nil {
			o.cache[k] = resp.Cache
		}
		o.cache[k] = o.cache[k].Narrowest(resp.Cache)
		for it := rawjson.Array(rawjson.Lookup(resp.Raw, kindTable[k].list)); it.Next(); {
			o.told[k] = append(o.told[k], bytes.Clone(it.Value))
		}
		cursor = rawjson.Lookup(resp.Raw, "nextCursor")
		switch {
		case cursor == nil || rawjson.IsNull(cursor):
			return nil
		case seen[string(cursor)]:
			return fmt.Errorf("%s: the cursor %s comes again and again", kindTable[k].method, cursor)
		case len(o.told[k]) > maxItems:
			return fmt.Errorf("%s: there are more than %d", kindTable[k].method, maxItems)
		}
		cursor = bytes.Clone(cursor)
		seen[string(cursor)] = true
	}
	return fmt.Errorf("%s: there are more than %d pages", kindTable[k].method, maxPages)
}

// lists reports whether the server has lists of the kind.
func lists(c mcp.ServerCapabilities, k Kind) bool {
	switch k {
	case Tool:
		return c.Tools != nil
	case Prompt:
		return c.Prompts != nil
	}
	return c.Resources != nil
}

// none reports whether a server does not have the method: templates are often left out.
func none(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound
}

// keep makes what was learned the upstream's offer.
func (u *Upstream) keep(ctx context.Context, in *instance, o *offer) {
	u.remember(in.made, o)
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil { // there is another definition by now
		return
	}
	was := u.offer
	u.learned = time.Now()
	u.offer = o.derive(u, u.def.Tools)
	for _, q := range u.offer.quarantined {
		u.hub.opts.Logger.Warn("it is left out of what is offered", "server", u.name, q.Kind.String(), q.Name, "why", q.Reason)
	}
	u.announce(u.offer.differs(was))
}

// differs returns the kinds of which two offers hold other things; nil is an offer of nothing.
func (o *offer) differs(other *offer) (changed []Kind) {
	none := &offer{}
	same := func(a, b *Item) bool { return bytes.Equal(a.Raw, b.Raw) }
	for k := range kinds {
		if !slices.EqualFunc(cmp.Or(o, none).items[k], cmp.Or(other, none).items[k], same) {
			changed = append(changed, k)
		}
	}
	return changed
}

// reoffer makes the offer anew, with other rules; u.mu is held.
func (u *Upstream) reoffer() {
	if was := u.offer; was != nil {
		u.offer = was.derive(u, u.def.Tools)
		u.announce(u.offer.differs(was))
	}
}

// kinds returns the kinds of which the upstream offers something.
func (o *offer) kinds() (some []Kind) {
	for k := range kinds {
		if o != nil && len(o.items[k]) > 0 {
			some = append(some, k)
		}
	}
	return some
}

// announce says that there are other things of these kinds; u.mu is held.
func (u *Upstream) announce(changed []Kind) {
	u.hub.catalog.invalidate()
	if len(changed) == 0 {
		return
	}
	u.hub.bus.publish(Event{Upstream: u.name, Kind: CatalogChanged, Changed: changed})
}

// subscribing is how long to wait for a subscription before the lists are read: what changes between the two would be missed,
// and has to be read again.
const subscribing = time.Second

// follower keeps the offer up to date while the server says what changes.
type follower struct {
	upstream *Upstream
	in       *instance
	learned  chan struct{} // closed when the lists have been read once
	early    chan struct{} // closed when the subscription has begun, or there is none to wait for
}

// follow begins to follow a connection, and returns when the lists may be read. Close learned after that.
func (u *Upstream) follow(ctx context.Context, in *instance, work *sync.WaitGroup) *follower {
	f := &follower{u, in, make(chan struct{}), make(chan struct{})}
	c := in.client.Capabilities()
	filter := mcp.SubscriptionFilter{
		ToolsListChanged:     c.Tools != nil && c.Tools.ListChanged,
		PromptsListChanged:   c.Prompts != nil && c.Prompts.ListChanged,
		ResourcesListChanged: c.Resources != nil && c.Resources.ListChanged,
	}
	if !filter.ToolsListChanged && !filter.PromptsListChanged && !filter.ResourcesListChanged {
		return f
	}
	work.Go(func() { f.run(ctx, filter) })
	timer := time.NewTimer(subscribing)
	defer timer.Stop()
	select {
	case <-f.early:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f
}

func (f *follower) run(ctx context.Context, filter mcp.SubscriptionFilter) {
	began := time.Now()
	w, err := f.in.client.Watch(ctx, filter)
	late := time.Since(began) >= subscribing
	close(f.early)
	if err != nil {
		if ctx.Err() == nil {
			f.upstream.hub.opts.Logger.Warn("changes of what it offers cannot be followed", "server", f.upstream.name, "err", err)
		}
		return
	}
	defer w.Close()
	select {
	case <-f.learned:
	case <-ctx.Done():
		return
	}
	if late {
		f.upstream.relearn(ctx, f.in, "")
	}
	for change, err := range w.Changes() {
		if err != nil {
			return // the connection is lost, or says no more
		}
		f.upstream.relearn(ctx, f.in, change.Method)
		pause(ctx, gathering) // one that changes a list whenever it is listed is not listed without end
	}
}

// gathering is how long changes are gathered before lists are read again.
const gathering = 50 * time.Millisecond

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// relearn reads the lists again that a change is about: all of them for a gap.
func (u *Upstream) relearn(ctx context.Context, in *instance, method string) {
	u.reread(ctx, in, func(k Kind) bool { return method == "" || kindTable[k].changed == method })
}

// reread reads some of the lists again.
func (u *Upstream) reread(ctx context.Context, in *instance, which func(Kind) bool) {
	u.mu.Lock()
	was := u.offer
	u.mu.Unlock()
	if was == nil || ctx.Err() != nil { // there is another definition by now
		return
	}
	o := &offer{told: was.told, says: was.says, cache: was.cache, problems: was.problems}
	for k := range kinds {
		if !which(k) {
			continue
		}
		fresh := &offer{}
		err := fresh.readSoon(ctx, in, k)
		if ctx.Err() != nil || lost(err) {
			return
		}
		o.told[k], o.cache[k], o.problems[k] = fresh.told[k], fresh.cache[k], ""
		if err != nil {
			o.problems[k] = err.Error()
		}
	}
	u.keep(ctx, in, o)
}

// refresh reads lists again that could not be read, and those of which the server does not say when they change, once what
// was read is stale by its own words.
func (u *Upstream) refresh(ctx context.Context, in *instance) {
	u.mu.Lock()
	o, age := u.offer, time.Since(u.learned)
	u.mu.Unlock()
	if o == nil {
		return
	}
	c := in.client.Capabilities()
	stale := func(k Kind) bool {
		ttl := o.cache[k].TTL
		return lists(c, k) && (o.problems[k] != "" || !announces(c, k) && ttl > 0 && age > ttl)
	}
	for k := range kinds {
		if stale(k) {
			u.reread(ctx, in, stale)
			return
		}
	}
}

// announces reports whether the server says when its list of a kind changes.
func announces(c mcp.ServerCapabilities, k Kind) bool {
	switch k {
	case Tool:
		return c.Tools != nil && c.Tools.ListChanged
	case Prompt:
		return c.Prompts != nil && c.Prompts.ListChanged
	}
	return c.Resources != nil && c.Resources.ListChanged
}
