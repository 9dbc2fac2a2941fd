package client

import (
	"container/list"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of a client's cache. The least recently used result is evicted first.
const (
	maxCacheEntries = 1024
	maxCacheBytes   = 16 << 20
)

// cache keeps results for as long as the server allows (server/utilities/caching). It belongs to
// one client and therefore to one authorization context, so it may hold private results too. The
// zero cache is ready.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	used    list.List                // most recently used first
	bytes   int
	epochs  map[string]uint64 // by method: how often its results became invalid
}

type cacheEntry struct {
	key, method, uri string
	resp             *mcp.Response
	until            time.Time
}

func (e *cacheEntry) size() int { return len(e.key) + len(e.resp.Raw) + 256 }

// cacheSlot is the place for a result that is being fetched. The zero slot stores nothing.
type cacheSlot struct {
	key, method, uri string
	epoch            uint64
}

// lookupResult returns the fresh result of the request, or the slot to store it in.
func (c *cache) lookupResult(method string, params json.RawMessage, now time.Time) (cacheSlot, *mcp.Response) {
	s, ok := cacheSlotFor(method, params)
	if !ok {
		return cacheSlot{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.epoch = c.epochs[method]
	at := c.entries[s.key]
	if at == nil {
		return s, nil
	}
	if e := at.Value.(*cacheEntry); now.Before(e.until) {
		c.used.MoveToFront(at)
		return cacheSlot{}, e.resp
	}
	c.removeEntry(at)
	return s, nil
}

// cacheSlotFor derives the key from the method and the parameters that affect the result. ok is
// false for a retry with answers, which must not be cached.
func cacheSlotFor(method string, params json.RawMessage) (s cacheSlot, ok bool) {
	key := append(append(make([]byte, 0, len(method)+len(params)+1), method...), ' ')
	for it := rawjson.Object(params); it.Next(); {
		switch string(it.Key) {
		case "inputResponses", "requestState":
			return s, false
		case "_meta":
			continue
		case "uri":
			s.uri, _ = rawjson.String(it.Value)
		}
		key = append(append(key, params[it.Start:it.End]...), ',')
	}
	s.key, s.method = string(key), method
	return s, true
}

// storeResult stores a result, unless the server forbids it or a change made it stale while it was
// on its way.
func (c *cache) storeResult(s cacheSlot, resp *mcp.Response) {
	if s.key == "" || resp.Type != mcp.ResultComplete || resp.Cache.TTL <= 0 {
		return
	}
	e := &cacheEntry{key: s.key, method: s.method, uri: s.uri, resp: resp, until: time.Now().Add(resp.Cache.TTL)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochs[s.method] != s.epoch || e.size() > maxCacheBytes/4 {
		return
	}
	if old := c.entries[s.key]; old != nil {
		c.removeEntry(old)
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	c.entries[s.key] = c.used.PushFront(e)
	c.bytes += e.size()
	for c.bytes > maxCacheBytes || len(c.entries) > maxCacheEntries {
		c.removeEntry(c.used.Back())
	}
}

func (c *cache) removeEntry(at *list.Element) {
	e := c.used.Remove(at).(*cacheEntry)
	delete(c.entries, e.key)
	c.bytes -= e.size()
}

// dropMethod removes the results of the method that isStale selects; nil selects all. Results of
// the method that are on their way will not be stored.
func (c *cache) dropMethod(method string, isStale func(*cacheEntry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochs == nil {
		c.epochs = map[string]uint64{}
	}
	c.epochs[method]++
	for at := c.used.Front(); at != nil; {
		next := at.Next()
		if e := at.Value.(*cacheEntry); e.method == method && (isStale == nil || isStale(e)) {
			c.removeEntry(at)
		}
		at = next
	}
}

// invalidate removes the results that a notification makes stale.
func (c *cache) invalidate(n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationToolsChanged:
		c.dropMethod(mcp.MethodListTools, nil)
	case mcp.NotificationPromptsChanged:
		c.dropMethod(mcp.MethodListPrompts, nil)
	case mcp.NotificationResourcesChanged:
		c.dropMethod(mcp.MethodListResources, nil)
		c.dropMethod(mcp.MethodListResourceTemplates, nil)
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		// The updated URI may name a part of the resource that was read, or the reverse.
		c.dropMethod(mcp.MethodReadResource, func(e *cacheEntry) bool {
			return strings.HasPrefix(e.uri, uri) || strings.HasPrefix(uri, e.uri)
		})
	}
}

// clear removes all results and refuses those on their way.
func (c *cache) clear() {
	for _, method := range []string{
		mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource,
	} {
		c.dropMethod(method, nil)
	}
}
