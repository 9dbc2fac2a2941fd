package hub

import (
	"slices"
	"sync"
)

// preparedUpstream is an upstream with its next definition.
type preparedUpstream struct {
	*Upstream
	next  Definition
	lists preparedLists
	isNew bool
}

// maxPreparations bounds the logs of definitions that are read at the same time.
const maxPreparations = 32

// prepareAll returns the upstreams of definitions, each name once. It reads saved lists and logs,
// which may wait for a network, so only h.applying is held. It returns nothing if the hub is
// closed.
func (h *Hub) prepareAll(definitions []Definition) []*preparedUpstream {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	var all []*preparedUpstream
	done := map[string]bool{}
	for _, d := range definitions {
		if done[d.Name] {
			continue
		}
		done[d.Name] = true
		p := &preparedUpstream{Upstream: h.upstreams[d.Name], next: d}
		if p.Upstream == nil {
			p.Upstream, p.isNew = newUpstream(h, d), true
		}
		all = append(all, p)
	}
	h.mu.Unlock()
	var work sync.WaitGroup
	room := make(chan struct{}, maxPreparations)
	for _, p := range all {
		room <- struct{}{}
		work.Go(func() {
			defer func() { <-room }()
			if p.isNew {
				p.lists.lists = p.loadLists(&p.next)
			} else {
				p.lists = p.prepareLists(&p.next)
			}
		})
	}
	work.Wait()
	return all
}

// applyPrepared makes upstreams the hub's set. It returns those whose definitions must be compared
// again.
func (h *Hub) applyPrepared(all []*preparedUpstream, cause string) (late []*Upstream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	kept := map[string]bool{}
	var order []*Upstream
	for _, p := range all {
		u := p.Upstream
		kept[u.name] = true
		order = append(order, u)
		switch {
		case p.isNew:
			h.upstreams[u.name] = u
			u.startRunning(p.lists.lists, cause)
		case u.redefine(p.next, p.lists, cause):
			late = append(late, u)
		}
	}
	for _, u := range h.order {
		if !kept[u.name] {
			delete(h.upstreams, u.name)
			h.removals.Go(func() { u.remove(cause) })
		}
	}
	moved := !slices.Equal(order, h.order)
	h.order = order
	if moved {
		h.catalog.invalidate()
	}
	return late
}
