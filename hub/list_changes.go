package hub

import (
	"context"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/timeout"
	"github.com/dowel-mcp/dowel/mcp"
)

// subscribeTimeout is how long readLists waits for the subscription to list changes. The
// subscription should begin first, because a change in between would be missed; if it is late, all
// lists are read again.
const subscribeTimeout = time.Second

// changeFollower rereads lists of a connection when the server announces changes.
type changeFollower struct {
	upstream   *Upstream
	conn       *connection
	listsRead  chan struct{} // closed when the lists have been read once
	subscribed chan struct{} // closed when the subscription has begun or failed
}

// followChanges subscribes to list changes, and returns when the lists may be read. The caller
// closes listsRead afterwards.
func (u *Upstream) followChanges(ctx context.Context, conn *connection, work *sync.WaitGroup) *changeFollower {
	f := &changeFollower{u, conn, make(chan struct{}), make(chan struct{})}
	c := conn.client.Server().Capabilities
	filter := mcp.SubscriptionFilter{
		ToolsListChanged:     c.Tools != nil && c.Tools.ListChanged,
		PromptsListChanged:   c.Prompts != nil && c.Prompts.ListChanged,
		ResourcesListChanged: c.Resources != nil && c.Resources.ListChanged,
	}
	if !filter.ToolsListChanged && !filter.PromptsListChanged && !filter.ResourcesListChanged {
		return f
	}
	work.Go(func() { f.rereadOnChange(ctx, filter) })
	timer := time.NewTimer(subscribeTimeout)
	defer timer.Stop()
	select {
	case <-f.subscribed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f
}

// rereadOnChange subscribes and rereads changed lists until the connection is lost or ctx ends.
func (f *changeFollower) rereadOnChange(ctx context.Context, filter mcp.SubscriptionFilter) {
	start := time.Now()
	w, err := f.conn.client.Watch(ctx, filter)
	isLate := time.Since(start) >= subscribeTimeout
	close(f.subscribed)
	if err != nil {
		if ctx.Err() == nil {
			f.upstream.hub.opts.Logger.Warn("cannot subscribe to list changes", "server", f.upstream.name, "err", err)
		}
		return
	}
	defer w.Close()
	select {
	case <-f.listsRead:
	case <-ctx.Done():
		return
	}
	if isLate {
		f.upstream.rereadChanged(ctx, f.conn, "")
	}
	for change, err := range w.Changes() {
		if err != nil {
			return // the connection is lost, or the subscription has ended
		}
		f.upstream.rereadChanged(ctx, f.conn, change.Method)
		_ = timeout.Sleep(ctx, rereadInterval) // the changes end with ctx
	}
}

// rereadInterval is the least time between two readings of the lists. A server that changes its
// list whenever it is listed must not be listed without pause.
const rereadInterval = 50 * time.Millisecond

// rereadChanged rereads the lists that a notification is about. An empty method means all.
func (u *Upstream) rereadChanged(ctx context.Context, conn *connection, method string) {
	u.rereadLists(ctx, conn, func(k catalog.Kind) bool { return method == "" || k.ChangedMethod() == method })
}

// rereadLists rereads the lists of the kinds that stale reports.
func (u *Upstream) rereadLists(ctx context.Context, conn *connection, stale func(catalog.Kind) bool) {
	u.mu.Lock()
	old := u.lists
	u.mu.Unlock()
	if old == nil || ctx.Err() != nil { // the server is restarting
		return
	}
	o := &serverLists{raw: old.raw, instructions: old.instructions, problems: old.problems}
	o.offered.Caches = old.offered.Caches
	for k := range kinds {
		if !stale(k) {
			continue
		}
		fresh := &serverLists{}
		err := fresh.readListInTime(ctx, conn, k)
		if ctx.Err() != nil || isConnectionLost(err) {
			return
		}
		o.raw[k], o.offered.Caches[k], o.problems[k] = fresh.raw[k], fresh.offered.Caches[k], ""
		if err != nil {
			o.problems[k] = err.Error()
		}
	}
	u.storeLists(ctx, conn, o, false)
}

// refreshStale rereads lists that could not be read to the end, and lists that are older than their
// TTL if the server does not announce changes.
func (u *Upstream) refreshStale(ctx context.Context, conn *connection) {
	u.mu.Lock()
	o, age := u.lists, time.Since(u.listsReadAt)
	u.mu.Unlock()
	if o == nil {
		return
	}
	c := conn.client.Server().Capabilities
	stale := func(k catalog.Kind) bool {
		ttl := o.offered.Caches[k].TTL
		return hasList(c, k) && (o.problems[k] != "" || !announcesChanges(c, k) && ttl > 0 && age > ttl)
	}
	for k := range kinds {
		if stale(k) {
			u.rereadLists(ctx, conn, stale)
			return
		}
	}
}

// announcesChanges reports whether the server announces changes of its list of a kind.
func announcesChanges(c mcp.ServerCapabilities, k catalog.Kind) bool {
	switch k {
	case catalog.Tool:
		return c.Tools != nil && c.Tools.ListChanged
	case catalog.Prompt:
		return c.Prompts != nil && c.Prompts.ListChanged
	}
	return c.Resources != nil && c.Resources.ListChanged
}
