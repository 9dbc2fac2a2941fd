package server

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// listSet is a set of lists that changed.
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
	// maxPending is how many changes wait on one subscription. More updates of sub-resources become one of the resource
	// subscribed to, more changes of an extension push out the oldest.
	maxPending = 1024
	// maxItems is how many changed items wait for who listens to be asked whether they are visible. With more, the list
	// counts as changed.
	maxItems = 64
)

// listener is one subscription: what it wants, and what is due. Whoever makes a change notes it here and goes on.
type listener struct {
	wanted     listSet
	uris       []string
	extensions []extensionFilter
	principal  mcp.Principal
	announcer      mcp.Announcer // sends without waiting; nil where the peer cannot
	wakeups       chan struct{} // holds one token while something is due

	mu    sync.Mutex
	idle  bool      // nothing is being delivered, and the subscription is acknowledged
	quietUntil time.Time // until when list changes wait
	pending   pendingChanges
	delivering pendingChanges             // what is being delivered, whose memory is used again
	pendingURIs  map[string]bool // URIs in due.updates, where these are many
}

type extensionFilter struct {
	method string
	filter json.RawMessage
}

// pendingChanges is what a subscription has yet to deliver.
type pendingChanges struct {
	lists   listSet
	items   []Item // whose visibility decides whether their list has changed
	updates []*resourceUpdate
	changes []mcp.Change
}

// resourceUpdate is a change of a resource, encoded once for all that listen.
type resourceUpdate struct {
	uri    string
	params json.RawMessage
}

func newResourceUpdate(uri string) *resourceUpdate {
	params, err := mcp.Encode(&mcp.ResourceUpdatedParams{URI: uri})
	if err != nil {
		panic(err) // a struct with a string
	}
	return &resourceUpdate{uri, params}
}

func newListener(f mcp.SubscriptionFilter, v *mcp.Vocabulary, req *mcp.Request) *listener {
	l := &listener{uris: f.ResourceSubscriptions, principal: req.Principal, wakeups: make(chan struct{}, 1)}
	l.announcer, _ = req.Peer.(mcp.Announcer)
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

// noteListChange notes that lists have changed, for everybody or for those who see one of the items. Where nothing is in the way
// the change is sent at once, without the cost of waking a goroutine.
func (l *listener) noteListChange(changed listSet, items []Item, now time.Time, interval time.Duration) {
	if changed &= l.wanted; changed == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case items == nil && l.trySendNow(changed, now):
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

// trySendNow sends the change of one list without waiting, if it can.
func (l *listener) trySendNow(changed listSet, now time.Time) bool {
	if l.announcer == nil || !l.idle || l.pending.hasAny() || now.Before(l.quietUntil) {
		return false
	}
	for _, known := range listChanges {
		if changed == known.bit {
			return l.announcer.TryChange(mcp.Change{Method: known.method})
		}
	}
	return false
}

// setIdle says that what was due has been delivered, and whether list changes were among it.
func (l *listener) setIdle(lists bool, interval time.Duration, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle = idle; lists {
		l.quietUntil = time.Now().Add(interval)
	}
}

// noteUpdate notes that a resource has changed; subscribed is the URI that the subscription follows it by.
func (l *listener) noteUpdate(u *resourceUpdate, subscribed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasUpdate(u.uri) {
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

// hasUpdate reports whether the update of a resource is due already.
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
func (l *listener) noteChange(c mcp.Change) {
	l.mu.Lock()
	if len(l.pending.changes) >= maxPending {
		l.pending.changes = l.pending.changes[1:]
	}
	l.pending.changes = append(l.pending.changes, c)
	l.mu.Unlock()
	l.wakeUp()
}

// takePending returns what is due and leaves nothing, or only list changes where they have to wait: then wait says how long. What it
// returned before is void.
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

// emptied returns nothing that is due, in the same memory.
func (d pendingChanges) emptied() pendingChanges {
	clear(d.items)
	clear(d.updates)
	clear(d.changes)
	return pendingChanges{items: d.items[:0], updates: d.updates[:0], changes: d.changes[:0]}
}
