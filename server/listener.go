package server

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// listSet is a set of lists.
type listSet uint8

const (
	toolList listSet = 1 << iota
	promptList
	resourceList
)

var listChanges = [...]struct {
	bit    listSet
	method string
}{
	{toolList, mcp.NotificationToolsChanged},
	{promptList, mcp.NotificationPromptsChanged},
	{resourceList, mcp.NotificationResourcesChanged},
}

func listOfKind(k Kind) listSet {
	switch k {
	case KindTool:
		return toolList
	case KindPrompt:
		return promptList
	}
	return resourceList
}

const (
	// maxPending bounds the changes that wait on one subscription. Beyond it, an update of a
	// sub-resource becomes an update of the subscribed resource, and a change of an extension
	// replaces the oldest one.
	maxPending = 1024
	// maxItems bounds the changed items that wait for a check of their visibility. Beyond it, the
	// list counts as changed for every principal.
	maxItems = 64
)

// listener is one subscription: its filter and its pending changes. A change is noted here without
// waiting; the subscription's goroutine sends it.
type listener struct {
	wanted     listSet
	uris       []string
	extensions []extensionFilter
	tasks      []string    // ids; it is told of their states
	request    *taskListen // nil without tasks
	principal  mcp.Principal
	announcer  mcpwire.Announcer // sends without waiting; nil if the peer cannot
	wakeups    chan struct{}     // holds one token while changes are pending

	mu          sync.Mutex
	idle        bool      // acknowledged, and no change is being sent
	quietUntil  time.Time // list changes wait until then
	pending     pendingChanges
	delivering  pendingChanges  // the changes being sent; their memory is reused
	pendingURIs map[string]bool // URIs in pending.updates if these are many; else nil
	delivered   *resourceUpdate // the last one that was sent past the subscription's goroutine
}

// taskListen is the request of a subscription that follows tasks. If this process takes over such a
// task, the run gets the context.
type taskListen struct {
	ctx context.Context
	req *mcp.Request
}

type extensionFilter struct {
	method string
	filter json.RawMessage
}

// pendingChanges are the changes that a subscription has not sent yet.
type pendingChanges struct {
	lists   listSet
	items   []Item // their lists count as changed if the principal may see them
	updates []*resourceUpdate
	changes []mcp.Notification
}

// resourceUpdate is a change of a resource, encoded once for all listeners.
type resourceUpdate struct {
	uri    string
	params json.RawMessage
}

func newResourceUpdate(uri string) *resourceUpdate {
	params, err := mcp.Encode(&mcp.ResourceUpdatedParams{URI: uri})
	if err != nil {
		panic(err) // impossible: the struct holds one string
	}
	return &resourceUpdate{uri, params}
}

func (u *resourceUpdate) notification() mcp.Notification {
	return mcp.Notification{Method: mcp.NotificationResourceUpdated, Params: u.params}
}

func newListener(f mcp.SubscriptionFilter, v mcpwire.Vocabulary, req *mcp.Request) *listener {
	l := &listener{uris: f.ResourceSubscriptions, principal: req.Principal, wakeups: make(chan struct{}, 1)}
	l.announcer, _ = req.Peer.(mcpwire.Announcer)
	if f.ToolsListChanged {
		l.wanted |= toolList
	}
	if f.PromptsListChanged {
		l.wanted |= promptList
	}
	if f.ResourcesListChanged {
		l.wanted |= resourceList
	}
	for field, filter := range f.Extensions {
		method, _ := v.ListenFilter(field)
		l.extensions = append(l.extensions, extensionFilter{method, filter})
	}
	return l
}

func (l *listener) wakeUp() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}

// noteListChange notes that lists have changed: for every principal if items is nil, else for
// principals that see one of the items. If nothing is pending it sends the change at once, which
// saves waking a goroutine.
func (l *listener) noteListChange(changed listSet, items []Item, now time.Time, interval time.Duration) {
	if changed &= l.wanted; changed == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case items == nil && l.trySendList(changed, now):
		l.quietUntil = now.Add(interval)
		return
	case items == nil || len(l.pending.items)+len(items) > maxItems:
		l.pending.lists |= changed
	default:
		for _, item := range items {
			if listOfKind(item.Kind)&l.wanted != 0 {
				l.pending.items = append(l.pending.items, item)
			}
		}
	}
	l.wakeUp()
}

// isReady reports whether the goroutine that causes a change can send it itself: no other change is
// pending or being sent. l.mu is held, here and for the functions below.
func (l *listener) isReady() bool { return l.announcer != nil && l.idle && !l.pending.hasAny() }

// trySendList sends the change of one list without waiting. It returns false if it cannot.
func (l *listener) trySendList(changed listSet, now time.Time) bool {
	if !l.isReady() || now.Before(l.quietUntil) {
		return false
	}
	for _, known := range listChanges {
		if changed == known.bit {
			return l.announcer.TryChange(mcp.Notification{Method: known.method})
		}
	}
	return false
}

// setIdle records that the pending changes were sent. If lists is true, list changes were among
// them, and the next ones wait for the interval.
func (l *listener) setIdle(lists bool, interval time.Duration, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle = idle; lists {
		l.quietUntil = time.Now().Add(interval)
	}
}

// trySendUpdate sends an update to a client in this process without waiting. It returns false if it
// cannot. Other clients get their updates from the subscription's goroutine, which joins equal
// ones.
func (l *listener) trySendUpdate(u *resourceUpdate) bool {
	if l.delivered == u { // for another URI of the filter
		return true
	}
	if !l.isReady() || !l.announcer.DeliverChange(u.notification()) {
		return false
	}
	l.delivered = u
	return true
}

// noteUpdate notes that a resource has changed. subscribed is the URI in the subscription's filter.
// If isFiltered, not every principal may know of the resource.
func (l *listener) noteUpdate(u *resourceUpdate, subscribed string, isFiltered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasUpdate(u.uri) || !isFiltered && l.trySendUpdate(u) {
		return
	}
	if len(l.pending.updates) >= maxPending && u.uri != subscribed {
		if l.hasUpdate(subscribed) {
			return
		}
		u = newResourceUpdate(subscribed)
	}
	l.pending.updates = append(l.pending.updates, u)
	if l.pendingURIs != nil {
		l.pendingURIs[u.uri] = true
	}
	l.wakeUp()
}

// hasUpdate reports whether an update of the resource is pending.
func (l *listener) hasUpdate(uri string) bool {
	const few = 16
	if l.pendingURIs == nil && len(l.pending.updates) < few {
		return slices.ContainsFunc(l.pending.updates, func(u *resourceUpdate) bool { return u.uri == uri })
	}
	if l.pendingURIs == nil {
		l.pendingURIs = map[string]bool{}
		for _, u := range l.pending.updates {
			l.pendingURIs[u.uri] = true
		}
	}
	return l.pendingURIs[uri]
}

// noteChange notes a change of an extension.
func (l *listener) noteChange(c mcp.Notification) {
	l.mu.Lock()
	if len(l.pending.changes) >= maxPending {
		l.pending.changes = l.pending.changes[1:]
	}
	l.pending.changes = append(l.pending.changes, c)
	l.mu.Unlock()
	l.wakeUp()
}

// takePending returns the pending changes and removes them. List changes that must wait stay, and
// wait says for how long. The result is valid until the next call.
func (l *listener) takePending(now time.Time) (d pendingChanges, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = false
	fresh := l.delivering.emptied()
	l.delivering, l.pendingURIs = l.pending, nil
	if now.Before(l.quietUntil) && (l.delivering.lists != 0 || len(l.delivering.items) > 0) {
		fresh.lists, fresh.items = l.delivering.lists, l.delivering.items
		l.delivering.lists, l.delivering.items = 0, nil
		wait = l.quietUntil.Sub(now)
	}
	l.pending = fresh
	return l.delivering, wait
}

func (d *pendingChanges) hasAny() bool {
	return d.lists != 0 || len(d.items) > 0 || len(d.updates) > 0 || len(d.changes) > 0
}

// emptied returns an empty pendingChanges that reuses the memory of d.
func (d pendingChanges) emptied() pendingChanges {
	clear(d.items)
	clear(d.updates)
	clear(d.changes)
	return pendingChanges{items: d.items[:0], updates: d.updates[:0], changes: d.changes[:0]}
}
