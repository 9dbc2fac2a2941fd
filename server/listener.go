package server

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// lists is a set of lists that changed.
type lists uint8

const (
	toolList lists = 1 << iota
	promptList
	resourceList
)

var listChanges = [...]struct {
	bit    lists
	method string
}{
	{toolList, mcp.NotificationToolsChanged},
	{promptList, mcp.NotificationPromptsChanged},
	{resourceList, mcp.NotificationResourcesChanged},
}

func kindBit(k Kind) lists {
	switch k {
	case KindTool:
		return toolList
	case KindPrompt:
		return promptList
	}
	return resourceList
}

const (
	// maxDue is how many changes wait on one subscription. More updates of sub-resources become one of the resource
	// subscribed to, more changes of an extension push out the oldest.
	maxDue = 1024
	// maxItems is how many changed items wait for who listens to be asked whether they are visible. With more, the list
	// counts as changed.
	maxItems = 64
)

// listener is one subscription: what it wants, and what is due. Whoever makes a change notes it here and goes on.
type listener struct {
	wanted     lists
	uris       []string
	extensions []extensionFilter
	principal  mcp.Principal
	quick      mcp.Announcer // sends without waiting; nil where the peer cannot
	wake       chan struct{} // holds one token while something is due

	mu    sync.Mutex
	idle  bool      // nothing is being delivered, and the subscription is acknowledged
	quiet time.Time // until when list changes wait
	due   due
	taken due             // what is being delivered, whose memory is used again
	seen  map[string]bool // URIs in due.updates, where these are many
}

type extensionFilter struct {
	method string
	filter json.RawMessage
}

// due is what a subscription has yet to deliver.
type due struct {
	lists   lists
	items   []Item // whose visibility decides whether their list has changed
	updates []*update
	changes []mcp.Change
}

// update is a change of a resource, encoded once for all that listen.
type update struct {
	uri    string
	params json.RawMessage
}

func newUpdate(uri string) *update {
	params, err := mcp.Encode(&mcp.ResourceUpdatedParams{URI: uri})
	if err != nil {
		panic(err) // a struct with a string
	}
	return &update{uri, params}
}

func newListener(f mcp.SubscriptionFilter, v *mcp.Vocabulary, req *mcp.Request) *listener {
	l := &listener{uris: f.ResourceSubscriptions, principal: req.Principal, wake: make(chan struct{}, 1)}
	l.quick, _ = req.Peer.(mcp.Announcer)
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

func (l *listener) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// listChanged notes that lists have changed, for everybody or for those who see one of the items. Where nothing is in the way
// the change is sent at once, without the cost of waking a goroutine.
func (l *listener) listChanged(changed lists, items []Item, now time.Time, interval time.Duration) {
	if changed &= l.wanted; changed == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case items == nil && l.announce(changed, now):
		l.quiet = now.Add(interval)
		return
	case items == nil || len(l.due.items)+len(items) > maxItems:
		l.due.lists |= changed
	default:
		for _, item := range items {
			if kindBit(item.Kind)&l.wanted != 0 {
				l.due.items = append(l.due.items, item)
			}
		}
	}
	l.rouse()
}

// announce sends the change of one list without waiting, if it can.
func (l *listener) announce(changed lists, now time.Time) bool {
	if l.quick == nil || !l.idle || l.due.any() || now.Before(l.quiet) {
		return false
	}
	for _, known := range listChanges {
		if changed == known.bit {
			return l.quick.TryChange(mcp.Change{Method: known.method})
		}
	}
	return false
}

// rest says that what was due has been delivered, and whether list changes were among it.
func (l *listener) rest(lists bool, interval time.Duration, idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.idle = idle; lists {
		l.quiet = time.Now().Add(interval)
	}
}

// updated notes that a resource has changed; subscribed is the URI that the subscription follows it by.
func (l *listener) updated(u *update, subscribed string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has(u.uri) {
		return
	}
	if len(l.due.updates) >= maxDue && u.uri != subscribed {
		if l.has(subscribed) {
			return
		}
		u = newUpdate(subscribed)
	}
	l.due.updates = append(l.due.updates, u)
	if l.seen != nil {
		l.seen[u.uri] = true
	}
	l.rouse()
}

// has reports whether the update of a resource is due already.
func (l *listener) has(uri string) bool {
	const few = 16
	if l.seen == nil && len(l.due.updates) < few {
		return slices.ContainsFunc(l.due.updates, func(u *update) bool { return u.uri == uri })
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
		for _, u := range l.due.updates {
			l.seen[u.uri] = true
		}
	}
	return l.seen[uri]
}

// changed notes a change of an extension.
func (l *listener) changed(c mcp.Change) {
	l.mu.Lock()
	if len(l.due.changes) >= maxDue {
		l.due.changes = l.due.changes[1:]
	}
	l.due.changes = append(l.due.changes, c)
	l.mu.Unlock()
	l.rouse()
}

// take returns what is due and leaves nothing, or only list changes where they have to wait: then wait says how long. What it
// returned before is void.
func (l *listener) take(now time.Time) (d due, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = false
	fresh := l.taken.emptied()
	l.taken, l.seen = l.due, nil
	if now.Before(l.quiet) && (l.taken.lists != 0 || len(l.taken.items) > 0) {
		fresh.lists, fresh.items = l.taken.lists, l.taken.items
		l.taken.lists, l.taken.items = 0, nil
		wait = l.quiet.Sub(now)
	}
	l.due = fresh
	return l.taken, wait
}

func (d *due) any() bool {
	return d.lists != 0 || len(d.items) > 0 || len(d.updates) > 0 || len(d.changes) > 0
}

// emptied returns nothing that is due, in the same memory.
func (d due) emptied() due {
	clear(d.items)
	clear(d.updates)
	clear(d.changes)
	return due{items: d.items[:0], updates: d.updates[:0], changes: d.changes[:0]}
}
