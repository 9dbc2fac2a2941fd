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
	return s.list(ctx, req, KindTool, "tools", s.opts.Cache.Tools)
}

func (s *Server) listPrompts(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.list(ctx, req, KindPrompt, "prompts", s.opts.Cache.Prompts)
}

func (s *Server) listResources(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.list(ctx, req, KindResource, "resources", s.opts.Cache.Resources)
}

func (s *Server) listResourceTemplates(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return s.list(ctx, req, KindResourceTemplate, "resourceTemplates", s.opts.Cache.ResourceTemplates)
}

// list answers with the page that the request's cursor asks for. What everybody sees is put together once.
func (s *Server) list(ctx context.Context, req *mcp.Request, kind Kind, member string, cache mcp.Cache) (*mcp.Result, error) {
	if !s.catalog.offers(kind) {
		return s.methods.serve(ctx, s, req)
	}
	view := s.catalog.view(kind)
	computed := len(view.providers) > 0
	from, err := s.position(req, view)
	if err != nil {
		return nil, err
	}
	result := &mcp.Result{Cache: s.listScope(cache, computed), ServerInfo: s.info}
	start, _ := slices.BinarySearchFunc(view.slots, from.seq+1, func(sl slot, seq uint64) int { return int(sl.seq) - int(seq) })
	shared := s.opts.Visible == nil && !computed && start%s.opts.PageSize == 0
	if shared {
		if result.Raw = view.pages.page(start); result.Raw != nil {
			return result, nil
		}
	}
	if result.Raw, err = s.page(req, member, s.listed(ctx, req, kind, view, from, start)); err == nil && shared {
		view.pages.keep(start, result.Raw)
	}
	if err != nil {
		return nil, s.newCall(ctx, req, params{}).failed(err)
	}
	return result, nil
}

// view is a list as it was at one moment.
type view struct {
	slots     []slot
	pages     *pages
	providers []ResourceProvider
}

func (c *catalog) view(kind Kind) view {
	c.mu.RLock()
	defer c.mu.RUnlock()
	l := c.lists[kind]
	v := view{slots: l.slots, pages: l.pages}
	if kind == KindResource {
		v.providers = c.providers
	}
	return v
}

// listed is an encoded item and where it stands.
type listed struct {
	at      position
	encoded json.RawMessage
}

// listed yields what who asks may see of a list, from a position on.
func (s *Server) listed(ctx context.Context, req *mcp.Request, kind Kind, v view, from position, start int) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		if from.provider == 0 {
			for _, sl := range v.slots[start:] {
				if s.visible(ctx, req, sl.item) && !yield(listed{position{seq: sl.seq, name: sl.item.Name}, sl.item.encoded}, nil) {
					return
				}
			}
			from.provider, from.name = 1, ""
		}
		s.provided(ctx, req, v.providers, from, yield)
	}
}

// page encodes the first items of a sequence as the result of a list method.
func (s *Server) page(req *mcp.Request, member string, items iter.Seq2[listed, error]) (json.RawMessage, error) {
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
		raw = rawjson.AppendString(append(raw, `,"nextCursor":`...), s.cursor(req, last))
	}
	return append(raw, '}'), nil
}

// pages are the pages of one state of a list that everybody sees alike, by the index of their first item.
type pages struct {
	mu sync.RWMutex
	at map[int]json.RawMessage
}

func (p *pages) page(start int) json.RawMessage {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.at[start]
}

func (p *pages) keep(start int, raw json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at = map[int]json.RawMessage{}
	}
	p.at[start] = slices.Clip(raw)
}
