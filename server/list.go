package server

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

func (s *Server) listTools(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.serveList(ctx, req, KindTool, "tools", s.opts.Cache[mcp.MethodListTools])
}

func (s *Server) listPrompts(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.serveList(ctx, req, KindPrompt, "prompts", s.opts.Cache[mcp.MethodListPrompts])
}

func (s *Server) listResources(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.serveList(ctx, req, KindResource, "resources", s.opts.Cache[mcp.MethodListResources])
}

func (s *Server) listResourceTemplates(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.serveList(ctx, req, KindResourceTemplate, "resourceTemplates", s.opts.Cache[mcp.MethodListResourceTemplates])
}

// serveList serves the page that the request's cursor asks for. Pages that are equal for all
// principals are encoded once.
func (s *Server) serveList(ctx context.Context, req *mcp.Request, kind Kind, member string, cache mcp.Cache) (*mcp.Result, error) {
	if !s.catalog.offers(kind) {
		return s.methods.serveMethod(ctx, s, req)
	}
	view := s.catalog.snapshotList(kind)
	computed := len(view.providers) > 0
	from, err := s.openCursor(req, view)
	if err != nil {
		return nil, err
	}
	result := &mcp.Result{Cache: s.listScope(cache, computed), ServerInfo: s.info}
	start, _ := slices.BinarySearchFunc(view.slots, from.seq+1, func(sl listSlot, seq uint64) int { return int(sl.seq) - int(seq) })
	shared := s.opts.Visible == nil && !computed && start%s.opts.PageSize == 0
	page := start
	if kind == KindTool && s.showsExecution(req) {
		page = -1 - start
	}
	if shared {
		if result.Raw = view.pages.lookupPage(page); result.Raw != nil {
			return result, nil
		}
	}
	if result.Raw, err = s.encodePage(req, member, s.visibleEntries(ctx, req, kind, view, from, start)); err == nil && shared {
		view.pages.storePage(page, result.Raw)
	}
	if err != nil {
		return nil, s.newCall(ctx, req, callParams{}).handlerError(err)
	}
	return result, nil
}

// listView is a snapshot of a list.
type listView struct {
	slots     []listSlot
	pages     *pageCache
	providers []ResourceProvider
}

func (c *catalog) snapshotList(kind Kind) listView {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.lists[kind]
	v := listView{slots: l.slots, pages: l.pages}
	if kind == KindResource {
		v.providers = c.providers
	}
	return v
}

// listEntry is an encoded item and its position.
type listEntry struct {
	at      position
	encoded json.RawMessage
}

// visibleEntries yields the entries of a list from a position on that the principal may see.
func (s *Server) visibleEntries(ctx context.Context, req *mcp.Request, kind Kind, v listView, from position, start int) iter.Seq2[listEntry, error] {
	return func(yield func(listEntry, error) bool) {
		if from.provider == 0 {
			legacy := kind == KindTool && s.showsExecution(req)
			for _, sl := range v.slots[start:] {
				encoded := sl.item.encoded
				if legacy {
					encoded = withExecution(sl.item)
				}
				if s.isVisible(ctx, req, sl.item) && !yield(listEntry{position{seq: sl.seq, name: sl.item.Name}, encoded}, nil) {
					return
				}
			}
			from.provider, from.name = 1, ""
		}
		s.providedEntries(ctx, req, v.providers, from, yield)
	}
}

// encodePage encodes the first entries of a sequence as the result of a list method.
func (s *Server) encodePage(req *mcp.Request, member string, items iter.Seq2[listEntry, error]) (json.RawMessage, error) {
	raw := append(append([]byte(`{"`), member...), `":[`...)
	var last position
	n, more := 0, false
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		if more = n == s.opts.PageSize; more {
			break
		}
		if n > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, item.encoded...)
		last = item.at
		n++
	}
	raw = append(raw, ']')
	if more {
		raw = rawjson.AppendString(append(raw, `,"nextCursor":`...), s.sealCursor(req, last))
	}
	return append(raw, '}'), nil
}

// pageCache holds the encoded pages of one state of a list, by the index of their first item, or by
// -1 minus the index for pages in the form of 2025-11-25. Only
// pages that are equal for all principals are cached.
type pageCache struct {
	mu sync.RWMutex
	at map[int]json.RawMessage
}

func (p *pageCache) lookupPage(start int) json.RawMessage {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.at[start]
}

func (p *pageCache) storePage(start int, raw json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[int]json.RawMessage{}
	}
	p.at[start] = slices.Clip(raw)
}
