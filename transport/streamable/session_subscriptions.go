package streamable

import (
	"context"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// mergeSubscriptions returns the stored URIs after a request of this process: the URI in the
// request is added if own, the URIs of this process, contains it, and removed otherwise.
func mergeSubscriptions(stored, own []string, msg jsonrpc.Message) []string {
	uri, _ := rawjson.String(rawjson.Lookup(msg.Params, "uri"))
	if uri == "" {
		return stored
	}
	stored = slices.DeleteFunc(slices.Clone(stored), func(s string) bool { return s == uri })
	if slices.Contains(own, uri) {
		stored = append(stored, uri)
	}
	slices.Sort(stored)
	return stored
}

// subscribe subscribes to the resources to which the client has subscribed at another replica. They
// may have changed since, so a client that listens here is told so. last are the URIs that this
// process has taken over before.
func (ss *session) subscribe(ctx context.Context, last, uris []string) {
	r := ss.edge.Subscribe(ctx, last, uris)
	if len(r.Pending) > 0 {
		uris = ss.edge.Subscriptions() // the next request goes on
	}
	ss.mu.Lock()
	st := ss.sessionStream
	ss.applied = uris
	ss.addRefused(r.Refused)
	ss.mu.Unlock()
	if st != nil {
		st.reportSubscribed(r.Added)
	}
}

// maxRetry bounds how long the handler may take to accept subscriptions that it has refused before.
const maxRetry = 30 * time.Second

// retryRefused subscribes again to the resources that the handler has refused to restore, on a
// goroutine of the session. A server behind the handler may have started meanwhile.
func (ss *session) retryRefused() {
	ss.mu.Lock()
	ss.retries++
	uris, retries := ss.takeRefused(), ss.retries
	ss.mu.Unlock()
	if len(uris) > 0 {
		ss.edge.Go(func(ctx context.Context) { ss.subscribeAgain(ctx, uris, retries) })
	}
}

// subscribeAgain subscribes to uris. If the handler still refuses some and retryRefused was called
// meanwhile, it tries again. retries is the value of ss.retries at the call that has started it.
func (ss *session) subscribeAgain(ctx context.Context, uris []string, retries uint64) {
	ctx, cancel := context.WithTimeout(ctx, maxRetry)
	defer cancel()
	for len(uris) > 0 {
		r := ss.edge.Subscribe(ctx, nil, uris)
		ss.mu.Lock()
		st := ss.sessionStream
		ss.addRefused(slices.Concat(r.Refused, r.Pending))
		if uris = nil; ss.retries != retries && ctx.Err() == nil {
			uris, retries = ss.takeRefused(), ss.retries
		}
		ss.mu.Unlock()
		if st != nil {
			st.reportSubscribed(r.Added)
		}
	}
}

// takeRefused returns the URIs that the handler has refused and that the client still subscribes
// to, and forgets them. ss.mu is held.
func (ss *session) takeRefused() []string {
	wanted := ss.record.Subscriptions
	uris := slices.DeleteFunc(ss.refused, func(uri string) bool { return !slices.Contains(wanted, uri) })
	ss.refused = nil
	return uris
}

// addRefused adds URIs that the handler has refused. ss.mu is held.
func (ss *session) addRefused(uris []string) {
	ss.refused = append(ss.refused, uris...)
	slices.Sort(ss.refused)
	ss.refused = slices.Compact(ss.refused)
}
