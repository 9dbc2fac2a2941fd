package mcp

import (
	"context"
	"encoding/json"
)

// Handler answers requests. A server is a Handler, and so are a middleware around it, a gateway that forwards, and a
// client's answers to what servers ask. It is called concurrently.
//
// The error is an [*Error] for a protocol error with its code; any other error is reported to the peer as an internal
// error without its text. A Handler that needs input returns a Result of type [ResultInputRequired], never an error.
// ctx ends when the request is cancelled, with the reason as [context.Cause].
type Handler interface {
	ServeMCP(ctx context.Context, req *Request) (*Result, error)
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, req *Request) (*Result, error)

// ServeMCP calls f.
func (f HandlerFunc) ServeMCP(ctx context.Context, req *Request) (*Result, error) { return f(ctx, req) }

// Middleware wraps a Handler. Nothing else is needed to log, limit, trace or refuse requests.
type Middleware func(next Handler) Handler

// Chain wraps h so that the first middleware sees a request first.
//
// What the middleware does not take passes it by: where h is a [NotificationHandler] the chain is one, and notifications go
// to the outermost Handler of the chain that is one itself. A middleware that wants to see them returns such a Handler,
// and passes them on to next where that is a NotificationHandler. So it is with [Keyed] and [Versed].
func Chain(h Handler, mws ...Middleware) Handler {
	for i := len(mws) - 1; i >= 0; i-- {
		h = around(mws[i](h), h)
	}
	return h
}

// Request is one request, in either era. The fields up to NoProgress are the caller's, LogLevel and ClientCapabilities too; the
// edge fills all but Notify on the serving side. A Handler may change a copy, never the original: the raw fields alias the frame that was received.
type Request struct {
	Method string
	// Params is the one source of the request's parameters: an object, or nil. It includes _meta as it was received.
	Params json.RawMessage

	// Notify takes the notifications of this request on the calling side: in order, never concurrently, never after
	// RoundTrip has returned. Where it is nil, no progress token is sent.
	Notify func(Notification)
	// NoProgress says that Notify has no use for progress: then no progress token is sent either.
	NoProgress bool

	// Revision is the protocol revision that the request is spoken in.
	Revision Revision
	// Meta is the raw _meta object within Params, nil if there is none.
	Meta json.RawMessage
	// ClientCapabilities is what the client declared: with this request (modern) or at initialize (legacy). An object. On the
	// calling side it takes the place of what the connection declares, in the modern era; nil leaves that as it is.
	ClientCapabilities json.RawMessage
	// ClientInfo is how the client names itself, for display only; nil if it does not.
	ClientInfo json.RawMessage
	// ProgressToken is the raw token under which progress may be notified, nil if nobody listens.
	ProgressToken json.RawMessage
	// LogLevel is the least severe level that may be notified; empty if none may.
	LogLevel LoggingLevel
	// Principal is who asks, as far as a transport has verified it; empty on stdio.
	Principal Principal
	// Header holds the header fields that came with the request, canonically named; nil except over HTTP.
	Header map[string][]string
	// Peer sends notifications to the requester. It is dead once ServeMCP has returned.
	Peer Peer
}

// Principal is a verified identity. The zero Principal is nobody in particular.
type Principal struct {
	ID     string   // stable and unique among the server's users
	Scopes []string // what the credentials allow
}

// Peer is the way back to the sender of one request. Its methods are safe for concurrent use and fail with
// [ErrPeerGone] once ServeMCP has returned or the connection is lost.
type Peer interface {
	// Notify sends a notification scoped to the request: progress or a log message.
	Notify(ctx context.Context, n Notification) error
	// Change sends a change on a subscriptions/listen request, whose first change is the acknowledgement. On any other
	// request it is an error.
	Change(ctx context.Context, c Change) error
}

// Announcer is a [Peer] that can often send a change without waiting for anything. TryChange reports whether it did; where it
// did not, Change will.
type Announcer interface {
	TryChange(c Change) bool
}

// Disconnecter is a [Peer] whose connection can be ended while its request goes on: the client comes back for what is sent
// from then on. Disconnect reports whether that was done.
type Disconnecter interface {
	Disconnect() bool
}

// Notification is a one-way message.
type Notification struct {
	Method string
	Params json.RawMessage // an object, or nil
}

// Change is a notification that a subscription delivers. The edge adds the subscription's id, where the era has one.
type Change struct {
	Method string
	// Params is an object without subscription id, or nil: then the edge encodes the change once per subscription.
	Params json.RawMessage
}

// Result answers a request. Exactly one of Value and Raw is set, except that neither means an empty object.
type Result struct {
	// Type is empty for a complete result.
	Type ResultType
	// Value is encoded by the edge as the result's object.
	Value any
	// Raw is the result's object as it is; unknown fields survive. What belongs to the edge is replaced there: resultType,
	// the protocol's keys of _meta and, in the core's results of the core's methods, ttlMs and cacheScope.
	Raw json.RawMessage
	// Cache says how long and by whom a complete result may be reused, where the method's result is cacheable.
	Cache Cache
	// ServerInfo is the encoded Implementation that the edge puts into the result's _meta; nil for none.
	ServerInfo json.RawMessage
}

// Response is the result of a RoundTrip, with what belongs to the edge taken apart.
type Response struct {
	// Type is [ResultComplete] where the peer sent none.
	Type ResultType
	// Raw is the whole result object as it was received.
	Raw json.RawMessage
	// Cache is the server's hint; the zero Cache where it gave none.
	Cache Cache
	// Revision is the protocol revision of the exchange.
	Revision Revision
}

// NotificationHandler is a [Handler] that also takes notifications that a client sends, other than the protocol's own
// about cancellation and the handshake. NotifyMCP is called in the order in which they come and must not block.
type NotificationHandler interface {
	NotifyMCP(ctx context.Context, n Notification)
}
