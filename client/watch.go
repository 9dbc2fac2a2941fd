package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Watch is a subscription to changes that survives interruptions. [Client.Watch] makes one.
type Watch struct {
	client *Client
	filter mcp.SubscriptionFilter
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed after the last change
	queue  *changeQueue

	mu           sync.Mutex
	acknowledged mcp.SubscriptionFilter
	err          error
}

// ErrNothingToWatch is wrapped by the error of [Client.Watch] if the server accepts no part of the
// filter.
var ErrNothingToWatch = errors.New("the server offers none of these changes")

// Watch subscribes to changes. It returns when the server has acknowledged the subscription, and
// fails with [ErrNothingToWatch] if the server accepts no part of the filter; [Watch.Acknowledged]
// tells which part it accepts.
//
// The watch lives until ctx ends, [Watch.Close] or [Client.Close]. When the connection is lost or
// the server ends the subscription, the watch subscribes again with back-off and reports a gap.
func (c *Client) Watch(ctx context.Context, filter mcp.SubscriptionFilter) (*Watch, error) {
	if !grantsAny(filter, filter) {
		return nil, c.callError(mcp.MethodListen, "", errors.New("the filter asks for no changes"))
	}
	w := &Watch{client: c, filter: filter, done: make(chan struct{}), queue: newChangeQueue()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.conn.lifetime, func() { w.cancel(mcp.ErrClosed) })
	first := make(chan error, 1)
	if !c.conn.goUntilClose(func() { defer unhook(); w.run(first) }) {
		w.cancel(nil)
		unhook()
		return nil, c.callError(mcp.MethodListen, "", mcp.ErrClosed)
	}
	if err := w.awaitAcknowledgement(first); err != nil {
		w.cancel(nil)
		<-w.done
		return nil, c.callError(mcp.MethodListen, "", err)
	}
	return w, nil
}

// OnChange is [Client.Watch] with a function in place of a loop: handle gets each change, one at a
// time, in both eras of the protocol. If the watch ends with an error, as [Watch.Changes]
// describes, the last call has that error and no change. A call of handle may still be running when
// [Watch.Close] returns. [Client.Close] waits for it, so handle must not call that.
func (c *Client) OnChange(ctx context.Context, filter mcp.SubscriptionFilter, handle func(Change, error)) (*Watch, error) {
	w, err := c.Watch(ctx, filter)
	if err != nil {
		return nil, err
	}
	started := c.conn.goUntilClose(func() {
		for change, err := range w.Changes() {
			c.conn.callbacks.Add(1)
			handle(change, err)
			c.conn.callbacks.Add(-1)
		}
	})
	if !started {
		w.Close()
		return nil, c.callError(mcp.MethodListen, "", mcp.ErrClosed)
	}
	return w, nil
}

// awaitAcknowledgement waits for the first acknowledgement.
func (w *Watch) awaitAcknowledgement(first <-chan error) error {
	limit, cancel := w.client.conn.withConnectLimit(w.ctx, 0)
	defer cancel()
	select {
	case err := <-first:
		return err
	case <-limit.Done():
	}
	select {
	case err := <-first: // the cause of the watch's end
		return err
	default:
		return fmt.Errorf("the server did not acknowledge the subscription: %w", context.Cause(limit))
	}
}

// Acknowledged returns the part of the filter that the server accepts. It may change when the watch
// subscribes again.
func (w *Watch) Acknowledged() mcp.SubscriptionFilter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acknowledged
}

// Changes iterates over the changes. While the loop body runs, equal changes are collected into
// one. The loop ends without an error when the watch is closed or its context has ended. It ends
// with an error when the server refuses the subscription or the client has given up its connection.
// Leaving the loop closes the watch. Only one loop may run at a time.
func (w *Watch) Changes() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		defer w.Close()
		for {
			change, ok := w.queue.nextChange()
			if !ok {
				break
			}
			if !yield(change, nil) {
				return
			}
		}
		if err := w.lastError(); err != nil {
			yield(Change{}, err)
		}
	}
}

// Close ends the watch and its subscription, and waits for both. It always returns nil.
func (w *Watch) Close() error {
	w.cancel(nil)
	<-w.done
	return nil
}

func (w *Watch) lastError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// steadyAfter is how long a subscription must last for its end not to lengthen the next wait:
// proxies cut streams every minute or so.
const steadyAfter = 10 * time.Second

// run subscribes again and again until the watch ends.
func (w *Watch) run(first chan<- error) {
	defer close(w.done)
	defer w.queue.endChanges()
	defer w.cancel(nil)
	restart := w.client.opts.Restart
	pauses := backoff{restart.Base, restart.Cap}
	for tries := 0; ; {
		began := time.Now()
		s := &subscription{watch: w, first: first}
		err := s.runRequest()
		switch {
		case w.ctx.Err() != nil || w.client.conn.lifetime.Err() != nil:
			return
		case first != nil && !s.open:
			first <- err
			return
		case s.open:
			first = nil
		}
		if time.Since(began) >= steadyAfter {
			tries = 0
		}
		if tries++; w.isFinal(err, tries) {
			w.mu.Lock()
			w.err = w.client.callError(mcp.MethodListen, "", err)
			w.mu.Unlock()
			return
		}
		if !waitDelay(w.ctx, pauses.delay(tries), nil) {
			return
		}
	}
}

// isFinal reports whether subscribing again is pointless. A failed connection is not final as long
// as the client still tries to reconnect.
func (w *Watch) isFinal(err error, tries int) bool {
	var answered *mcp.Error
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrNothingToWatch), errors.Is(err, mcp.ErrClosed), w.client.State().Status == Failed:
		return true
	case errors.As(err, &answered):
		return answered.Code == jsonrpc.CodeMethodNotFound || answered.Code == jsonrpc.CodeInvalidParams ||
			tries > max(w.client.opts.Restart.Max, 1)
	}
	return false
}

// subscription is one subscriptions/listen request of a watch.
type subscription struct {
	watch *Watch
	first chan<- error // receives nil when the watch's first subscription is acknowledged
	open  bool         // acknowledged, with a part of the filter
	end   context.CancelCauseFunc
}

// runRequest returns when the subscription has ended; nil means that the server ended it in order.
func (s *subscription) runRequest() error {
	w := s.watch
	params, err := mcp.Encode(&mcp.ListenParams{Notifications: w.filter})
	if err != nil {
		return err
	}
	l, err := w.client.conn.acquireLink(w.ctx, 0)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(w.ctx)
	defer end(nil)
	s.end = end
	_, err = l.transport.RoundTrip(mcpwire.WithInlineNotify(ctx), &mcp.Request{Method: mcp.MethodListen, Params: params, Notify: s.handleNotification})
	switch {
	case err == nil && !s.open:
		return errors.New("the server ended the subscription before it acknowledged it")
	case err != nil && w.client.conn.dropIfWrongRevision(l, err):
		return connectionError(err)
	}
	return err
}

// handleNotification never waits, and calls no code of the user.
func (s *subscription) handleNotification(n mcp.Notification) {
	if n.Method == mcp.NotificationAcknowledged {
		s.handleAcknowledgement(n)
		return
	}
	if !s.open {
		return
	}
	uri := s.watch.client.invalidate(n)
	s.watch.queue.addChange(Change{Method: n.Method, Params: n.Params, URI: uri})
}

func (s *subscription) handleAcknowledgement(n mcp.Notification) {
	w := s.watch
	var p mcp.ListenParams
	if err := mcp.Decode(n.Params, &p); err != nil {
		s.end(fmt.Errorf("the acknowledgement cannot be read: %w", err))
		return
	}
	if !grantsAny(w.filter, p.Notifications) {
		s.end(ErrNothingToWatch)
		return
	}
	w.mu.Lock()
	w.acknowledged = p.Notifications
	w.mu.Unlock()
	again := !s.open && s.first == nil
	s.open = true
	switch {
	case s.first != nil:
		s.first <- nil
		s.first = nil
	case again:
		w.client.forgetServer()
		w.queue.addGap()
	}
}

// grantsAny reports whether have grants any part of want.
func grantsAny(want, have mcp.SubscriptionFilter) bool {
	if want.ToolsListChanged && have.ToolsListChanged || want.PromptsListChanged && have.PromptsListChanged ||
		want.ResourcesListChanged && have.ResourcesListChanged {
		return true
	}
	for _, uri := range want.ResourceSubscriptions {
		if slices.Contains(have.ResourceSubscriptions, uri) {
			return true
		}
	}
	for field := range want.Extensions {
		if granted, ok := have.Extensions[field]; ok && !rawjson.IsNull(granted) {
			return true
		}
	}
	return false
}
