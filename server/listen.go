package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxSubscriptions is how many resources one subscription follows; the acknowledgement leaves out the others.
const maxSubscriptions = 4096

// listen answers subscriptions/listen: it acknowledges, and delivers changes until the request or the server ends. The
// goroutine of the request is the only one there is, so that a peer that does not read holds up itself alone. It waits for
// long: what is on its stack is kept small.
func (s *Server) listen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	l, ack, err := s.subscribe(req)
	if err != nil {
		return nil, err
	}
	defer s.subscriptions.remove(l)
	if err := req.Peer.Change(ctx, mcp.Change{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	return s.deliver(ctx, req, l)
}

// subscribe enters a listener, before the acknowledgement, after which no change is missed.
func (s *Server) subscribe(req *mcp.Request) (l *listener, ack json.RawMessage, err error) {
	if req.Peer == nil {
		return nil, nil, mcp.Errorf(codeInternal, "nobody to notify")
	}
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	if !rawjson.IsObject(rawjson.Lookup(req.Params, "notifications")) {
		return nil, nil, mcp.InvalidParams("%s needs params.notifications, an object that says what to listen to", req.Method)
	}
	agreed := s.agree(p.Notifications)
	if ack, err = mcp.Encode(&mcp.AcknowledgedParams{Notifications: agreed}); err != nil {
		return nil, nil, err
	}
	l = newListener(agreed, s.vocabulary, req)
	s.subscriptions.add(l)
	return l, ack, nil
}

// deliver passes on what concerns the listener. It waits on one channel that is the listener's own: the locks of channels
// that a thousand subscriptions wait on would be what a change costs.
func (s *Server) deliver(ctx context.Context, req *mcp.Request, l *listener) (*mcp.Result, error) {
	d := delivery{ctx: ctx, req: req, listener: l}
	defer context.AfterFunc(ctx, l.rouse)()
	defer l.rest(false, 0, false)
	defer d.stop()
	l.rest(false, 0, true)
	for range l.wake {
		if over, err := s.wake(&d); err != nil {
			return nil, err
		} else if over {
			break
		}
	}
	return s.result(nil), nil
}

// delivery is what one subscription waits with.
type delivery struct {
	ctx      context.Context
	req      *mcp.Request
	listener *listener
	held     *time.Timer // of list changes that have to wait
}

func (d *delivery) stop() {
	if d.held != nil {
		d.held.Stop()
	}
}

// wake passes on what is due, and reports whether the server has ended the subscription.
func (s *Server) wake(d *delivery) (over bool, err error) {
	switch {
	case d.ctx.Err() != nil:
		return false, context.Cause(d.ctx)
	case s.subscriptions.closed.Load():
		return true, nil
	}
	due, wait := d.listener.take(time.Now())
	if wait > 0 && d.held == nil {
		d.held = time.AfterFunc(wait, d.listener.rouse)
	} else if wait > 0 {
		d.held.Reset(wait)
	}
	lists, err := s.pass(d.ctx, d.req, due)
	if err == nil {
		d.listener.rest(lists, s.opts.ListInterval, true)
	}
	return false, err
}

// pass sends what has come together, as far as who listens may know of it, and reports whether there were list changes.
func (s *Server) pass(ctx context.Context, req *mcp.Request, d due) (lists bool, err error) {
	for _, item := range d.items {
		if bit := kindBit(item.Kind); d.lists&bit == 0 && s.visible(ctx, req, item) {
			d.lists |= bit
		}
	}
	for _, change := range d.changes {
		if err := req.Peer.Change(ctx, change); err != nil {
			return false, err
		}
	}
	for _, known := range listChanges {
		if d.lists&known.bit == 0 {
			continue
		}
		if err := req.Peer.Change(ctx, mcp.Change{Method: known.method}); err != nil {
			return false, err
		}
	}
	for _, u := range d.updates {
		if !s.readable(ctx, req, u.uri) {
			continue
		}
		if err := req.Peer.Change(ctx, mcp.Change{Method: mcp.NotificationResourceUpdated, Params: u.params}); err != nil {
			return false, err
		}
	}
	return d.lists != 0, nil
}

// agree returns the part of a filter that the server delivers.
func (s *Server) agree(f mcp.SubscriptionFilter) mcp.SubscriptionFilter {
	agreed := mcp.SubscriptionFilter{
		ToolsListChanged:     f.ToolsListChanged && s.catalog.offers(KindTool),
		PromptsListChanged:   f.PromptsListChanged && s.catalog.offers(KindPrompt),
		ResourcesListChanged: f.ResourcesListChanged && s.catalog.offers(KindResource),
	}
	if s.catalog.offers(KindResource) {
		seen := map[string]bool{}
		for _, uri := range f.ResourceSubscriptions {
			if uri != "" && !seen[uri] && len(seen) < maxSubscriptions {
				seen[uri] = true
				agreed.ResourceSubscriptions = append(agreed.ResourceSubscriptions, uri)
			}
		}
	}
	for field, filter := range f.Extensions {
		if _, known := s.vocabulary.ListenFilter(field); known {
			if agreed.Extensions == nil {
				agreed.Extensions = map[string]json.RawMessage{}
			}
			agreed.Extensions[field] = filter
		}
	}
	return agreed
}

// readable reports whether who listens may know of the resource: it is in the catalog and visible, or else a visible
// template, or none at all, has the URI.
func (s *Server) readable(ctx context.Context, req *mcp.Request, uri string) bool {
	if s.opts.Visible == nil {
		return true
	}
	if item, ok := s.catalog.item(KindResource, []byte(uri)); ok {
		return s.visible(ctx, req, item)
	}
	if !s.visibleURI(ctx, req, uri) {
		return false
	}
	hidden := false
	for _, t := range s.catalog.templates() {
		if _, ok := t.parsed.Match(uri); ok {
			if s.visible(ctx, req, t.item) {
				return true
			}
			hidden = true
		}
	}
	return !hidden
}
