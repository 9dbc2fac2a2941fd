package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
)

// catalog holds the items of a server.
type catalog struct {
	mu              sync.RWMutex
	lists           map[Kind]*itemList    // has all four kinds; the map itself never changes
	templatesByRank []*registeredTemplate // most specific first; replaced, never modified
	providers       []ResourceProvider
	// canComplete reports whether an item with completions was ever added.
	canComplete bool
	// hasScopes reports whether a tool with scopes was ever added.
	hasScopes atomic.Bool
	// hasTasks reports whether a tool with tasks was ever added.
	hasTasks atomic.Bool
}

// itemList holds the items of one kind in the order of their addition. Slots are only appended or
// replaced, so a copy of the slice remains valid.
type itemList struct {
	slots   []listSlot
	byName  map[string]Item
	lastSeq uint64
	offered bool
	pages   *pageCache
}

// listSlot is an item with its sequence number, which is never used again.
type listSlot struct {
	seq  uint64
	item Item
}

func (c *catalog) init(declare []Kind) {
	c.lists = map[Kind]*itemList{}
	for _, k := range []Kind{KindTool, KindPrompt, KindResource, KindResourceTemplate} {
		c.lists[k] = &itemList{byName: map[string]Item{}, pages: &pageCache{}, offered: slices.Contains(declare, k)}
	}
}

// lookupItem returns the item with the name.
func (c *catalog) lookupItem(kind Kind, name []byte) (Item, bool) {
	c.mu.RLock()
	item, ok := c.lists[kind].byName[string(name)]
	c.mu.RUnlock()
	return item, ok
}

// offers reports whether the server has, had or declares items of the kind. Resources and templates
// count as one kind.
func (c *catalog) offers(kind Kind) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if kind == KindResource || kind == KindResourceTemplate {
		return c.lists[KindResource].offered || c.lists[KindResourceTemplate].offered || len(c.providers) > 0
	}
	return c.lists[kind].offered
}

// Add adds all items, or none and an error if a name is in use. Listening clients are notified.
func (s *Server) Add(items ...Item) error {
	if mcpwire.DefinesTasks(s.opts.Extensions) {
		for _, item := range items {
			if t, ok := item.entry.(*registeredTool); ok && t.task.Mode != taskNever {
				return fmt.Errorf("server: tool %q has tasks, but Options.Extensions defines tasks too", item.Name)
			}
		}
	}
	if err := s.catalog.addAll(items); err != nil {
		return err
	}
	s.notifyListChanged(true, items)
	return nil
}

func (c *catalog) addAll(items []Item) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	type key struct {
		kind Kind
		name string
	}
	fresh := make(map[key]bool, 1)
	for _, item := range items {
		if item.entry == nil {
			return errors.New("server: an Item must come from NewTool, NewResource or NewPrompt")
		}
		if _, taken := c.lists[item.Kind].byName[item.Name]; taken || fresh[key{item.Kind, item.Name}] {
			return fmt.Errorf("server: there is already a %s %q", item.Kind, item.Name)
		}
		fresh[key{item.Kind, item.Name}] = true
	}
	for _, item := range items {
		c.insertItem(item)
	}
	return nil
}

func (c *catalog) insertItem(item Item) {
	l := c.lists[item.Kind]
	l.lastSeq++
	l.slots = append(l.slots, listSlot{l.lastSeq, item})
	l.byName[item.Name] = item
	l.offered, l.pages = true, &pageCache{}
	switch t := item.entry.(type) {
	case *registeredTool:
		if t.scopes != nil || t.scopesFor != nil {
			c.hasScopes.Store(true)
		}
		if t.task.Mode != taskNever {
			c.hasTasks.Store(true)
		}
	case *registeredPrompt:
		c.canComplete = c.canComplete || t.completers.hasAny()
	case *registeredTemplate:
		c.canComplete = c.canComplete || t.completers.hasAny()
		at, _ := slices.BinarySearchFunc(c.templatesByRank, t, func(a, b *registeredTemplate) int { return uritemplate.Compare(a.parsed, b.parsed) })
		c.templatesByRank = slices.Insert(slices.Clone(c.templatesByRank), at, t)
	}
}

// Remove removes items by name and returns how many it found. Listening clients are notified.
// Running calls continue, but the tasks of a removed tool fail. In a cluster, tasks that run at
// other replicas continue.
func (s *Server) Remove(kind Kind, names ...string) int {
	removed := s.catalog.removeAll(kind, names)
	if len(removed) > 0 {
		s.notifyListChanged(true, removed)
		s.failTasksOf(removed)
	}
	return len(removed)
}

func (c *catalog) removeAll(kind Kind, names []string) (removed []Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lists[kind]
	if l == nil {
		panic("server: unknown kind " + string(kind))
	}
	for _, name := range names {
		if item, ok := l.byName[name]; ok {
			removed = append(removed, item)
			delete(l.byName, name)
		}
	}
	if len(removed) == 0 {
		return nil
	}
	l.slots = slices.DeleteFunc(slices.Clone(l.slots), func(s listSlot) bool { _, kept := l.byName[s.item.Name]; return !kept })
	l.pages = &pageCache{}
	if kind == KindResourceTemplate {
		c.templatesByRank = slices.DeleteFunc(slices.Clone(c.templatesByRank), func(t *registeredTemplate) bool {
			return slices.ContainsFunc(removed, func(i Item) bool { return i.entry == any(t) })
		})
	}
	return removed
}

// mustAdd is Add for items that the program itself registers: it panics on an error.
func (s *Server) mustAdd(item Item, err error) {
	if err == nil {
		err = s.Add(item)
	}
	if err != nil {
		panic(err)
	}
}

// Kind is the kind of an [Item].
type Kind string

const (
	KindTool             Kind = "tool"
	KindPrompt           Kind = "prompt"
	KindResource         Kind = "resource"
	KindResourceTemplate Kind = "resource template"
)

// Item is a tool, prompt, resource or resource template. [NewTool], [NewPrompt] and [NewResource]
// make one; [Server.Add] adds it to any number of servers. It does not change.
type Item struct {
	Kind Kind
	// Name identifies the item: the name of a tool or prompt, the URI of a resource, the text of a
	// template.
	Name string
	// Meta is the _meta of the item's options. It is read-only.
	Meta mcp.Meta

	encoded json.RawMessage // its entry in a list
	entry   any             // *tool, *prompt, *resource or *template; nil for a computed resource
}

func encodeItem(kind Kind, name string, meta mcp.Meta, described, entry any) (Item, error) {
	if err := mcpwire.CheckMeta(meta); err != nil {
		return Item{}, err
	}
	encoded, err := mcp.Encode(described)
	return Item{Kind: kind, Name: name, Meta: meta, encoded: encoded, entry: entry}, err
}

// isVisible reports whether the item exists for the request's principal.
func (s *Server) isVisible(ctx context.Context, req *mcp.Request, item Item) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, item)
}

// isVisibleURI reports whether a resource that is not in the catalog, but comes from a template or
// provider, exists for the request's principal.
func (s *Server) isVisibleURI(ctx context.Context, req *mcp.Request, uri string) bool {
	return s.opts.Visible == nil || s.opts.Visible(ctx, req.Principal, Item{Kind: KindResource, Name: uri})
}

// findVisible returns the item with the name, unless it is hidden from the principal.
func (s *Server) findVisible(ctx context.Context, p mcp.Principal, kind Kind, name []byte) (Item, bool) {
	item, ok := s.catalog.lookupItem(kind, name)
	return item, ok && (s.opts.Visible == nil || s.opts.Visible(ctx, p, item))
}
