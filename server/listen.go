package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxSubscriptions bounds the resources that one subscription follows. The acknowledgement leaves
// out the others.
const maxSubscriptions = 4096

// listen serves subscriptions/listen: it acknowledges, and then sends changes until the request or
// the server ends. It uses only the goroutine of the request, so a client that does not read blocks
// nothing else. Because the goroutine lives long, its stack is kept small.
func (s *Server) listen(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	l, ack, err := s.subscribe(ctx, req)
	if err != nil {
		return nil, err
	}
	defer s.subscriptions.remove(l)
	if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: ack}); err != nil {
		return nil, err
	}
	return s.runSubscription(ctx, req, l)
}

// subscribe adds a listener. It does so before the acknowledgement is sent, so that no later change
// is missed.
func (s *Server) subscribe(ctx context.Context, req *mcp.Request) (l *listener, ack json.RawMessage, err error) {
	if req.Peer == nil {
		return nil, nil, mcp.Errorf(codeInternal, "the transport cannot send notifications")
	}
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, nil, mcp.InvalidParams("%s: %v", req.Method, err)
	}
	if !rawjson.IsObject(rawjson.Lookup(req.Params, "notifications")) {
		return nil, nil, mcp.InvalidParams("%s needs params.notifications, an object that says what to listen to", req.Method)
	}
	agreed := s.acceptedFilter(p.Notifications)
	taskIDs, err := s.acceptTasks(ctx, req, &agreed)
	if err != nil {
		return nil, nil, err
	}
	if ack, err = mcp.Encode(&mcp.ListenParams{Notifications: agreed}); err != nil {
		return nil, nil, err
	}
	l = newListener(agreed, s.vocabulary, req)
	if len(taskIDs) > 0 {
		l.tasks, l.request = taskIDs, &taskListen{context.WithoutCancel(ctx), detachRequest(req)}
	}
	s.subscriptions.addListener(l)
	s.noteTasks(ctx, l, taskIDs)
	return l, ack, nil
}

// runSubscription sends the listener's changes. It waits on a single channel that belongs to the
// listener: if a thousand subscriptions waited on a shared channel, contention for its lock would
// dominate the cost of a change.
func (s *Server) runSubscription(ctx context.Context, req *mcp.Request, l *listener) (*mcp.Result, error) {
	d := subscriptionLoop{ctx: ctx, req: req, listener: l}
	defer context.AfterFunc(ctx, l.wakeUp)()
	defer l.setIdle(false, 0, false)
	defer d.stopTimer()
	l.setIdle(false, 0, true)
	for range l.wakeups {
		if over, err := s.deliverPending(&d); err != nil {
			return nil, err
		} else if over {
			break
		}
	}
	return s.newResult(nil), nil
}

// subscriptionLoop is the state of one runSubscription.
type subscriptionLoop struct {
	ctx      context.Context
	req      *mcp.Request
	listener *listener
	timer    *time.Timer // fires when delayed list changes may be sent
}

func (d *subscriptionLoop) stopTimer() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// deliverPending sends the pending changes. over reports that the server has ended the
// subscription.
func (s *Server) deliverPending(d *subscriptionLoop) (over bool, err error) {
	switch {
	case d.ctx.Err() != nil:
		return false, context.Cause(d.ctx)
	case s.subscriptions.closed.Load():
		return true, nil
	}
	due, wait := d.listener.takePending(time.Now())
	if wait > 0 && d.timer == nil {
		d.timer = time.AfterFunc(wait, d.listener.wakeUp)
	} else if wait > 0 {
		d.timer.Reset(wait)
	}
	lists, err := s.sendChanges(d.ctx, d.req, due)
	if err == nil {
		d.listener.setIdle(lists, s.opts.ListInterval, true)
	}
	return false, err
}

// sendChanges sends the changes that the principal may know of. lists reports whether list changes
// were among them.
func (s *Server) sendChanges(ctx context.Context, req *mcp.Request, d pendingChanges) (lists bool, err error) {
	for _, item := range d.items {
		if bit := listOfKind(item.Kind); d.lists&bit == 0 && s.isVisible(ctx, req, item) {
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
		if err := req.Peer.Change(ctx, mcp.Notification{Method: known.method}); err != nil {
			return false, err
		}
	}
	for _, u := range d.updates {
		if !s.mayKnowResource(ctx, req, u.uri) {
			continue
		}
		if err := req.Peer.Change(ctx, u.notification()); err != nil {
			return false, err
		}
	}
	return d.lists != 0, nil
}

// acceptedFilter returns the part of a filter that the server delivers.
func (s *Server) acceptedFilter(f mcp.SubscriptionFilter) mcp.SubscriptionFilter {
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

// mayKnowResource reports whether the principal may know of the resource: it is visible in the
// catalog, or else a visible template matches its URI, or no template matches.
func (s *Server) mayKnowResource(ctx context.Context, req *mcp.Request, uri string) bool {
	if s.opts.Visible == nil {
		return true
	}
	if item, ok := s.catalog.lookupItem(KindResource, []byte(uri)); ok {
		return s.isVisible(ctx, req, item)
	}
	if !s.isVisibleURI(ctx, req, uri) {
		return false
	}
	hidden := false
	for _, t := range s.catalog.templatesRanked() {
		if _, ok := t.parsed.Match(uri); ok {
			if s.isVisible(ctx, req, t.item) {
				return true
			}
			hidden = true
		}
	}
	return !hidden
}
