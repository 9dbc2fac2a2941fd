package server

import (
	"encoding/json"
	"slices"
	"sync"

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
	wake       chan struct{} // holds one token while something is due

	mu    sync.Mutex
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

func newListener(f mcp.SubscriptionFilter, v *mcp.Vocabulary, p mcp.Principal) *listener {
	l := &listener{uris: f.ResourceSubscriptions, principal: p, wake: make(chan struct{}, 1)}
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

// listChanged notes that lists have changed, for everybody or for those who see one of the items.
func (l *listener) listChanged(changed lists, items []Item) {
	if changed &= l.wanted; changed == 0 {
		return
	}
	l.mu.Lock()
	if items == nil || len(l.due.items)+len(items) > maxItems {
		l.due.lists |= changed
	} else {
		for _, item := range items {
			if kindBit(item.Kind)&l.wanted != 0 {
				l.due.items = append(l.due.items, item)
			}
		}
	}
	l.mu.Unlock()
	l.rouse()
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

// take returns what is due and leaves nothing, or only list changes where they have to wait; then it holds some. What it
// returned before is void.
func (l *listener) take(lists bool) (d due, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fresh := l.taken.emptied()
	l.taken, l.seen = l.due, nil
	if !lists {
		fresh.lists, fresh.items = l.taken.lists, l.taken.items
		l.taken.lists, l.taken.items = 0, nil
	}
	l.due = fresh
	return l.taken, fresh.lists != 0 || len(fresh.items) > 0
}

// emptied returns nothing that is due, in the same memory.
func (d due) emptied() due {
	clear(d.items)
	clear(d.updates)
	clear(d.changes)
	return due{items: d.items[:0], updates: d.updates[:0], changes: d.changes[:0]}
}
