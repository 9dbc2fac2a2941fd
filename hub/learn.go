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

// readLists reads what the server offers. A list that cannot be read to its end is what could be read of it, and its problem is
// kept; the error is that of a connection that is lost.
func (u *Upstream) readLists(ctx context.Context, in *connection) error {
	o := &serverLists{instructions: in.client.Instructions()}
	var wg sync.WaitGroup
	var errs [kinds]error
	for k := range kinds {
		wg.Go(func() { errs[k] = o.readListInTime(ctx, in, k) })
	}
	wg.Wait()
	for k, err := range errs {
		if err == nil {
			continue
		}
		if isConnectionLost(err) || ctx.Err() != nil {
			return err
		}
		o.problems[k] = err.Error()
	}
	u.storeLists(ctx, in, o)
	return nil
}

func isConnectionLost(err error) bool {
	return errors.Is(err, mcp.ErrConnection) || errors.Is(err, mcp.ErrClosed)
}

// listTimeout bounds the reading of one list: a server that answers everything else is of use without it.
const listTimeout = 20 * time.Second

// readListInTime is read within a bound.
func (o *serverLists) readListInTime(ctx context.Context, in *connection, k Kind) error {
	bounded, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("%s: it was not answered within %v", kindTable[k].method, listTimeout))
	defer cancel()
	return o.readList(bounded, in, k)
}

// readList reads one list of an offer that is being made.
func (o *serverLists) readList(ctx context.Context, in *connection, k Kind) error {
	if !hasList(in.client.Capabilities(), k) {
		return nil
	}
	cursor, seen := json.RawMessage(nil), map[string]bool{}
	for range maxPages {
		params := json.RawMessage(nil)
		if cursor != nil {
			params = fmt.Appendf(nil, `{"cursor":%s}`, cursor)
		}
		resp, err := in.client.RoundTrip(ctx, &mcp.Request{Method: kindTable[k].method, Params: params})
		if isMethodNotFound(err) && k == Template {
			return nil
		}
		if err != nil {
			return err
		}
		if resp.Type != mcp.ResultComplete {
			return fmt.Errorf("%s: its result is of type %s", kindTable[k].method, resp.Type)
		}
		if o.raw[k] == nil {
			o.caches[k] = resp.Cache
		}
		o.caches[k] = o.caches[k].Narrowest(resp.Cache)
		for it := rawjson.Array(rawjson.Lookup(resp.Raw, kindTable[k].list)); it.Next(); {
			o.raw[k] = append(o.raw[k], bytes.Clone(it.Value))
		}
		cursor = rawjson.Lookup(resp.Raw, "nextCursor")
		switch {
		case cursor == nil || rawjson.IsNull(cursor):
			return nil
		case seen[string(cursor)]:
			return fmt.Errorf("%s: the cursor %s comes again and again", kindTable[k].method, cursor)
		case len(o.raw[k]) > maxItems:
			return fmt.Errorf("%s: there are more than %d", kindTable[k].method, maxItems)
		}
		cursor = bytes.Clone(cursor)
		seen[string(cursor)] = true
	}
	return fmt.Errorf("%s: there are more than %d pages", kindTable[k].method, maxPages)
}

// hasList reports whether the server has lists of the kind.
func hasList(c mcp.ServerCapabilities, k Kind) bool {
	switch k {
	case Tool:
		return c.Tools != nil
	case Prompt:
		return c.Prompts != nil
	}
	return c.Resources != nil
}

// isMethodNotFound reports whether a server does not have the method: templates are often left out.
func isMethodNotFound(err error) bool {
	var answered *mcp.Error
	return errors.As(err, &answered) && answered.Code == jsonrpc.CodeMethodNotFound
}

// storeLists makes what was learned the upstream's offer.
func (u *Upstream) storeLists(ctx context.Context, in *connection, o *serverLists) {
	u.saveLists(in.fingerprint, o)
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil { // there is another definition by now
		return
	}
	was := u.lists
	u.listsReadAt = time.Now()
	u.lists = o.applyRules(u, u.def.Tools)
	for _, q := range u.lists.quarantined {
		u.hub.opts.Logger.Warn("it is left out of what is offered", "server", u.name, q.Kind.String(), q.Name, "why", q.Reason)
	}
	u.announceChanges(u.lists.changedKinds(was))
}

// changedKinds returns the kinds of which two offers hold other things; nil is an offer of nothing.
func (o *serverLists) changedKinds(other *serverLists) (changed []Kind) {
	none := &serverLists{}
	same := func(a, b *Item) bool { return bytes.Equal(a.Definition, b.Definition) }
	for k := range kinds {
		if !slices.EqualFunc(cmp.Or(o, none).items[k], cmp.Or(other, none).items[k], same) {
			changed = append(changed, k)
		}
	}
	return changed
}

// reapplyRules makes the offer anew, with other rules; u.mu is held.
func (u *Upstream) reapplyRules() {
	if was := u.lists; was != nil {
		u.lists = was.applyRules(u, u.def.Tools)
		u.announceChanges(u.lists.changedKinds(was))
	}
}

// nonEmptyKinds returns the kinds of which the upstream offers something.
func (o *serverLists) nonEmptyKinds() (some []Kind) {
	for k := range kinds {
		if o != nil && len(o.items[k]) > 0 {
			some = append(some, k)
		}
	}
	return some
}

// announceChanges says that there are other things of these kinds; u.mu is held.
func (u *Upstream) announceChanges(changed []Kind) {
	u.hub.catalog.invalidate()
	if len(changed) == 0 {
		return
	}
	u.hub.bus.publish(Event{Upstream: u.name, Kind: CatalogChanged, Changed: changed})
}

// subscribeTimeout is how long to wait for a subscription before the lists are read: what changes between the two would be missed,
// and has to be read again.
const subscribeTimeout = time.Second

// changeFollower keeps the offer up to date while the server says what changes.
type changeFollower struct {
	upstream   *Upstream
	in         *connection
	listsRead  chan struct{} // closed when the lists have been read once
	subscribed chan struct{} // closed when the subscription has begun, or there is none to wait for
}

// followChanges begins to follow a connection, and returns when the lists may be read. Close learned after that.
func (u *Upstream) followChanges(ctx context.Context, in *connection, work *sync.WaitGroup) *changeFollower {
	f := &changeFollower{u, in, make(chan struct{}), make(chan struct{})}
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
	timer := time.NewTimer(subscribeTimeout)
	defer timer.Stop()
	select {
	case <-f.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f
}

func (f *changeFollower) run(ctx context.Context, filter mcp.SubscriptionFilter) {
	began := time.Now()
	w, err := f.in.client.Watch(ctx, filter)
	late := time.Since(began) >= subscribeTimeout
	close(f.subscribed)
	if err != nil {
		if ctx.Err() == nil {
			f.upstream.hub.opts.Logger.Warn("changes of what it offers cannot be followed", "server", f.upstream.name, "err", err)
		}
		return
	}
	defer w.Close()
	select {
	case <-f.listsRead:
	case <-ctx.Done():
		return
	}
	if late {
		f.upstream.rereadChanged(ctx, f.in, "")
	}
	for change, err := range w.Changes() {
		if err != nil {
			return // the connection is lost, or says no more
		}
		f.upstream.rereadChanged(ctx, f.in, change.Method)
		sleepContext(ctx, rereadInterval) // one that changes a list whenever it is listed is not listed without end
	}
}

// rereadInterval is how long changes are gathered before lists are read again.
const rereadInterval = 50 * time.Millisecond

func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// rereadChanged reads the lists again that a change is about: all of them for a gap.
func (u *Upstream) rereadChanged(ctx context.Context, in *connection, method string) {
	u.rereadLists(ctx, in, func(k Kind) bool { return method == "" || kindTable[k].changed == method })
}

// rereadLists reads some of the lists again.
func (u *Upstream) rereadLists(ctx context.Context, in *connection, which func(Kind) bool) {
	u.mu.Lock()
	was := u.lists
	u.mu.Unlock()
	if was == nil || ctx.Err() != nil { // there is another definition by now
		return
	}
	o := &serverLists{raw: was.raw, instructions: was.instructions, caches: was.caches, problems: was.problems}
	for k := range kinds {
		if !which(k) {
			continue
		}
		fresh := &serverLists{}
		err := fresh.readListInTime(ctx, in, k)
		if ctx.Err() != nil || isConnectionLost(err) {
			return
		}
		o.raw[k], o.caches[k], o.problems[k] = fresh.raw[k], fresh.caches[k], ""
		if err != nil {
			o.problems[k] = err.Error()
		}
	}
	u.storeLists(ctx, in, o)
}

// refreshStale reads lists again that could not be read, and those of which the server does not say when they change, once what
// was read is stale by its own words.
func (u *Upstream) refreshStale(ctx context.Context, in *connection) {
	u.mu.Lock()
	o, age := u.lists, time.Since(u.listsReadAt)
	u.mu.Unlock()
	if o == nil {
		return
	}
	c := in.client.Capabilities()
	stale := func(k Kind) bool {
		ttl := o.caches[k].TTL
		return hasList(c, k) && (o.problems[k] != "" || !announcesChanges(c, k) && ttl > 0 && age > ttl)
	}
	for k := range kinds {
		if stale(k) {
			u.rereadLists(ctx, in, stale)
			return
		}
	}
}

// announcesChanges reports whether the server says when its list of a kind changes.
func announcesChanges(c mcp.ServerCapabilities, k Kind) bool {
	switch k {
	case Tool:
		return c.Tools != nil && c.Tools.ListChanged
	case Prompt:
		return c.Prompts != nil && c.Prompts.ListChanged
	}
	return c.Resources != nil && c.Resources.ListChanged
}
