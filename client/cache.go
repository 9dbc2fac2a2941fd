package client

import (
	"container/list"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// Bounds of a client's cache. The least recently used result is evicted first.
const (
	maxCacheEntries = 1024
	maxCacheBytes   = 16 << 20
)

// cache keeps results for as long as the server allows (server/utilities/caching). A private result
// belongs to the authorization context in which it was read. The zero cache is ready.
type cache struct {
	mu       sync.Mutex
	entries  map[cacheKey]*list.Element // of *cacheEntry
	used     list.List                  // most recently used first
	bytes    int
	privates map[string]int    // by request: the number of private entries
	epochs   map[string]uint64 // by method: how often its results became invalid
}

// cacheKey identifies a result.
type cacheKey struct {
	request   string // the method and the parameters that affect the result
	isPrivate bool
	auth      authContext // of a private result
}

// authContext identifies the credentials of a call: a hash of the fields that a Header function
// adds to its requests. It is empty if the function adds no field, or if all calls of the
// connection have the same credentials.
type authContext string

type cacheEntry struct {
	key         cacheKey
	method, uri string
	resp        *mcp.Response
	until       time.Time
}

func (e *cacheEntry) size() int { return len(e.key.request) + len(e.key.auth) + len(e.resp.Raw) + 256 }

// cacheSlot is the place for a result that is being fetched. The zero slot stores nothing.
type cacheSlot struct {
	request, method, uri string
	epoch                uint64
}

// lookupResult returns the fresh result of the request, or the slot to store the result in.
// It calls auth only if the request has private results; auth returns ok false if the
// credentials are unknown.
func (c *cache) lookupResult(method string, params json.RawMessage, auth func() (a authContext, ok bool)) (cacheSlot, *mcp.Response) {
	s, ok := cacheSlotFor(method, params)
	if !ok {
		return cacheSlot{}, nil
	}
	c.mu.Lock()
	s.epoch = c.epochs[method]
	resp, some := c.freshEntry(cacheKey{request: s.request}), c.privates[s.request] > 0
	c.mu.Unlock()
	if resp == nil && some {
		if a, ok := auth(); ok {
			c.mu.Lock()
			resp = c.freshEntry(cacheKey{s.request, true, a})
			c.mu.Unlock()
		}
	}
	if resp != nil {
		return cacheSlot{}, resp
	}
	return s, nil
}

// freshEntry returns the result of a key if it is fresh, else nil. The caller holds c.mu.
func (c *cache) freshEntry(key cacheKey) *mcp.Response {
	at := c.entries[key]
	if at == nil {
		return nil
	}
	if e := at.Value.(*cacheEntry); time.Now().Before(e.until) {
		c.used.MoveToFront(at)
		return e.resp
	}
	c.removeEntry(at)
	return nil
}

// cacheSlotFor derives the slot from the method and the parameters that affect the result. ok is
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
	s.request, s.method = string(key), method
	return s, true
}

// storeResult stores a result that was read with the credentials auth. It stores nothing if the
// server forbids it, if a change has made the result stale meanwhile, or if the result is private
// and isKnown is false.
func (c *cache) storeResult(s cacheSlot, resp *mcp.Response, auth authContext, isKnown bool) {
	key := cacheKey{request: s.request}
	if resp.Cache.Scope != mcp.CachePublic {
		key.isPrivate, key.auth = true, auth
	}
	if s.request == "" || resp.Type != mcp.ResultComplete || resp.Cache.TTL <= 0 || key.isPrivate && !isKnown {
		return
	}
	e := &cacheEntry{key: key, method: s.method, uri: s.uri, resp: resp, until: time.Now().Add(resp.Cache.TTL)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochs[s.method] != s.epoch || e.size() > maxCacheBytes/4 {
		return
	}
	if old := c.entries[key]; old != nil {
		c.removeEntry(old)
	}
	if c.entries == nil {
		c.entries, c.privates = map[cacheKey]*list.Element{}, map[string]int{}
	}
	c.entries[key] = c.used.PushFront(e)
	c.bytes += e.size()
	if key.isPrivate {
		c.privates[key.request]++
	}
	for c.bytes > maxCacheBytes || len(c.entries) > maxCacheEntries {
		c.removeEntry(c.used.Back())
	}
}

func (c *cache) removeEntry(at *list.Element) {
	e := c.used.Remove(at).(*cacheEntry)
	delete(c.entries, e.key)
	c.bytes -= e.size()
	if !e.key.isPrivate {
		return
	}
	if c.privates[e.key.request]--; c.privates[e.key.request] == 0 {
		delete(c.privates, e.key.request)
	}
}

// dropMethod removes the results of the method that isStale selects; nil selects all. Results of
// the method that are on their way will not be stored.
func (c *cache) dropMethod(method string, isStale func(*cacheEntry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(method, isStale)
}

// dropLocked is dropMethod for a caller that holds c.mu.
func (c *cache) dropLocked(method string, isStale func(*cacheEntry) bool) {
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

// invalidate removes the results that a notification with this method makes stale. uri is the
// updated resource of [mcp.NotificationResourceUpdated].
func (c *cache) invalidate(method, uri string) {
	c.mu.Lock() // once: a change for many clients is mostly such steps
	defer c.mu.Unlock()
	switch method {
	case mcp.NotificationToolsChanged:
		c.dropLocked(mcp.MethodListTools, nil)
	case mcp.NotificationPromptsChanged:
		c.dropLocked(mcp.MethodListPrompts, nil)
	case mcp.NotificationResourcesChanged:
		c.dropLocked(mcp.MethodListResources, nil)
		c.dropLocked(mcp.MethodListResourceTemplates, nil)
		c.dropSkillsLocked()
	case mcp.NotificationResourceUpdated:
		c.dropSkillsLocked() // their entries have the digests of resources
		// The updated URI may name a part of the resource that was read, or the reverse.
		c.dropLocked(mcp.MethodReadResource, func(e *cacheEntry) bool {
			return strings.HasPrefix(e.uri, uri) || strings.HasPrefix(uri, e.uri)
		})
	}
}

// dropSkillsLocked removes the entries of skills. c.mu is held.
func (c *cache) dropSkillsLocked() {
	c.dropLocked(mcpwire.MethodListSkills, nil)
	c.dropLocked(mcpwire.MethodGetSkill, nil)
}

// clear removes all results and refuses those on their way.
func (c *cache) clear() {
	for _, method := range []string{
		mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource, mcpwire.MethodListSkills, mcpwire.MethodGetSkill,
	} {
		c.dropMethod(method, nil)
	}
}
