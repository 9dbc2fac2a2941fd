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

// Bounds of a client's cache: what was not used for longest goes first.
const (
	maxCacheEntries = 1024
	maxCacheBytes   = 16 << 20
)

// cache keeps results for as long as the server allows (server/utilities/caching). It belongs to one client, hence to
// one authorization context, so that private results may be kept too. The zero cache is ready.
type cache struct {
	mu      sync.Mutex
	entries map[string]*list.Element // of *entry
	used    list.List                // most recently used first
	bytes   int
	epochs  map[string]uint64 // by method: how often its results became invalid
}

type entry struct {
	key, method, uri string
	resp             *mcp.Response
	until            time.Time
}

func (e *entry) size() int { return len(e.key) + len(e.resp.Raw) + 256 }

// slot is where a result that is being fetched may be kept. The zero slot is nowhere.
type slot struct {
	key, method, uri string
	epoch            uint64
}

// lookup returns the fresh result of the request, or the slot to store it in.
func (c *cache) lookup(method string, params json.RawMessage, now time.Time) (slot, *mcp.Response) {
	s, ok := slotOf(method, params)
	if !ok {
		return slot{}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.epoch = c.epochs[method]
	at := c.entries[s.key]
	if at == nil {
		return s, nil
	}
	if e := at.Value.(*entry); now.Before(e.until) {
		c.used.MoveToFront(at)
		return slot{}, e.resp
	}
	c.remove(at)
	return s, nil
}

// slotOf derives the key: the method and the parameters that affect the result. Retries have none.
func slotOf(method string, params json.RawMessage) (s slot, ok bool) {
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

// store keeps a result, unless it may not be kept or became invalid while it was on its way.
func (c *cache) store(s slot, resp *mcp.Response) {
	if s.key == "" || resp.Type != mcp.ResultComplete || resp.Cache.TTL <= 0 {
		return
	}
	e := &entry{key: s.key, method: s.method, uri: s.uri, resp: resp, until: time.Now().Add(resp.Cache.TTL)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochs[s.method] != s.epoch || e.size() > maxCacheBytes/4 {
		return
	}
	if old := c.entries[s.key]; old != nil {
		c.remove(old)
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	c.entries[s.key] = c.used.PushFront(e)
	c.bytes += e.size()
	for c.bytes > maxCacheBytes || len(c.entries) > maxCacheEntries {
		c.remove(c.used.Back())
	}
}

func (c *cache) remove(at *list.Element) {
	e := c.used.Remove(at).(*entry)
	delete(c.entries, e.key)
	c.bytes -= e.size()
}

// drop removes the results of the method for which gone reports true, and those on their way.
func (c *cache) drop(method string, gone func(*entry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epochs == nil {
		c.epochs = map[string]uint64{}
	}
	c.epochs[method]++
	for at := c.used.Front(); at != nil; {
		next := at.Next()
		if e := at.Value.(*entry); e.method == method && (gone == nil || gone(e)) {
			c.remove(at)
		}
		at = next
	}
}

// changed removes what a notification makes invalid.
func (c *cache) changed(n mcp.Notification) {
	switch n.Method {
	case mcp.NotificationToolsChanged:
		c.drop(mcp.MethodListTools, nil)
	case mcp.NotificationPromptsChanged:
		c.drop(mcp.MethodListPrompts, nil)
	case mcp.NotificationResourcesChanged:
		c.drop(mcp.MethodListResources, nil)
		c.drop(mcp.MethodListResourceTemplates, nil)
	case mcp.NotificationResourceUpdated:
		uri, _ := rawjson.String(rawjson.Lookup(n.Params, "uri"))
		// The URI may be one of a part of the resource that was read, or the other way round.
		c.drop(mcp.MethodReadResource, func(e *entry) bool {
			return strings.HasPrefix(e.uri, uri) || strings.HasPrefix(uri, e.uri)
		})
	}
}

// clear removes everything, and what is on its way.
func (c *cache) clear() {
	for _, method := range []string{
		mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources,
		mcp.MethodListResourceTemplates, mcp.MethodReadResource,
	} {
		c.drop(method, nil)
	}
}
