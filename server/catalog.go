package server

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/uritemplate"
)

// catalog holds all items.
type catalog struct {
	mu        sync.RWMutex
	lists     map[Kind]*itemList // of all four kinds; the map itself never changes
	templatesByRank  []*registeredTemplate    // the most specific first; replaced, never changed
	providers []ResourceProvider
	// canComplete says that something was added that can be completed.
	canComplete bool
}

// itemList holds the items of one kind in the order in which they were added. Its slots are only ever appended to or replaced,
// so that a copy of the slice stays what it was.
type itemList struct {
	slots   []listSlot
	byName  map[string]Item
	lastSeq uint64
	offered bool
	pages   *pageCache
}

// listSlot is an item with its place, which no other item ever gets.
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

// lookupItem returns the item of that name.
func (c *catalog) lookupItem(kind Kind, name []byte) (Item, bool) {
	c.mu.RLock()
	item, ok := c.lists[kind].byName[string(name)]
	c.mu.RUnlock()
	return item, ok
}

// offers reports whether the server has, had or declares anything of the kind. Resources and templates are one.
func (c *catalog) offers(kind Kind) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if kind == KindResource || kind == KindResourceTemplate {
		return c.lists[KindResource].offered || c.lists[KindResourceTemplate].offered || len(c.providers) > 0
	}
	return c.lists[kind].offered
}

// Add adds items, all or none: a name that is taken is an error. Clients that listen are told.
func (s *Server) Add(items ...Item) error {
	if err := s.catalog.addAll(items); err != nil {
		return err
	}
	s.subscriptions.notifyListChanged(s.opts.Visible != nil, items)
	return nil
}

func (c *catalog) addAll(items []Item) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := make(map[Kind]map[string]bool, 1)
	for _, item := range items {
		if item.entry == nil {
			return errors.New("server: an Item must come from NewTool, NewResource or NewPrompt")
		}
		if _, taken := c.lists[item.Kind].byName[item.Name]; taken || fresh[item.Kind][item.Name] {
			return fmt.Errorf("server: there is already a %s %q", item.Kind, item.Name)
		}
		if fresh[item.Kind] == nil {
			fresh[item.Kind] = map[string]bool{}
		}
		fresh[item.Kind][item.Name] = true
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
	case *registeredPrompt:
		c.canComplete = c.canComplete || t.completers.hasAny()
	case *registeredTemplate:
		c.canComplete = c.canComplete || t.completers.hasAny()
		at, _ := slices.BinarySearchFunc(c.templatesByRank, t, func(a, b *registeredTemplate) int { return uritemplate.Compare(a.parsed, b.parsed) })
		c.templatesByRank = slices.Insert(slices.Clone(c.templatesByRank), at, t)
	}
}

// Remove removes items by name and reports how many there were. Clients that listen are told. A call that runs is not
// disturbed.
func (s *Server) Remove(kind Kind, names ...string) int {
	removed := s.catalog.removeAll(kind, names)
	if len(removed) > 0 {
		s.subscriptions.notifyListChanged(s.opts.Visible != nil, removed)
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

// mustAdd is Add for what is registered by the program itself.
func (s *Server) mustAdd(item Item, err error) {
	if err == nil {
		err = s.Add(item)
	}
	if err != nil {
		panic(err)
	}
}
