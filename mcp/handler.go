package mcp

import (
	"context"
	"encoding/json"
	"slices"
)

// Handler answers requests. Servers, middleware around them, gateways, and a client's answers to
// servers' questions are Handlers. ServeMCP is called concurrently.
//
// An [*Error] becomes a protocol error with its code. Any other error is reported to the peer as an
// internal error without its text. A Handler that needs input returns a Result of type
// [ResultInputRequired], not an error. ctx ends when the request is cancelled; [context.Cause]
// returns the reason.
//
// A Handler may implement more, which a transport finds by type assertion: [NotificationHandler]; a
// method Keys() *[Keys], which returns the keys that seal the sessions of the transport; a method
// Extensions() [][Extension], which lists the extensions that the handler understands; and a method
// Scopes(ctx context.Context, p [Principal], method string, params json.RawMessage) []string, which
// returns all scopes that a request needs. Transports over HTTP call Scopes before they begin an
// answer. If the Principal lacks one of the scopes, the answer is status 403, which names them all.
// A server has all these methods.
type Handler interface {
	ServeMCP(ctx context.Context, req *Request) (*Result, error)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, req *Request) (*Result, error)

// ServeMCP calls f.
func (f HandlerFunc) ServeMCP(ctx context.Context, req *Request) (*Result, error) { return f(ctx, req) }

// Middleware wraps a Handler, for example to log, limit, trace or refuse requests.
type Middleware func(next Handler) Handler

// Chain wraps h so that the first middleware sees a request first.
//
// Optional interfaces pass through: if h is a [NotificationHandler], so is the chain, and it sends
// notifications to the outermost Handler of the chain that implements the interface. A middleware
// that wants notifications implements [NotificationHandler] and passes them on to next, if next
// implements it too. The methods Keys and Extensions pass through in the same way. The scopes of
// several methods Scopes are added.
func Chain(h Handler, mws ...Middleware) Handler {
	for i := len(mws) - 1; i >= 0; i-- {
		h = keepInterfaces(mws[i](h), h)
	}
	return h
}

// Request is one request of either era. On the calling side, the caller sets the fields up to
// NoProgress, LogLevel, ClientCapabilities and Header. On the serving side, the transport sets all
// fields but Notify. A Handler may modify a copy, but never the original. The raw fields alias the
// received frame.
type Request struct {
	Method string
	// Params is the raw parameters, an object or nil, including _meta as received. It is the only
	// source of the parameters.
	Params json.RawMessage

	// Notify handles the notifications of this request on the calling side: in order, one at a
	// time, never after RoundTrip has returned. They are progress and log messages. Over
	// Streamable HTTP, a notification of an extension in the response to the request is one, too.
	// If Notify is nil, the request carries no progress token.
	Notify func(Notification)
	// NoProgress reports that Notify ignores progress, so that the request carries no progress
	// token.
	NoProgress bool

	// Revision is the protocol revision of the exchange.
	Revision Revision
	// Meta is the raw _meta object of Params, or nil.
	Meta json.RawMessage
	// ClientCapabilities is an object: the capabilities that the client declared with this request
	// (modern) or at initialize (legacy). On the calling side it replaces the capabilities of the
	// connection for this request, in the modern era; nil leaves them.
	ClientCapabilities json.RawMessage
	// ClientInfo is the client's Implementation, for display only; nil if it sent none.
	ClientInfo json.RawMessage
	// ProgressToken is the raw token of progress notifications, or nil if the client wants none.
	ProgressToken json.RawMessage
	// LogLevel is the least severe level that the client wants; empty if it wants no log messages.
	LogLevel LoggingLevel
	// Principal is the identity of the client's user, as far as a transport has verified it; zero
	// on stdio.
	Principal Principal
	// Header holds the header fields of the HTTP request under their canonical names. Over
	// WebSocket these are the fields of the request that has opened the connection. It is nil on
	// transports without HTTP. On the calling side it holds fields Mcp-Param-… that a client has
	// sent to a program in between: Streamable HTTP sends them with a tools/call, unless the tool
	// defines them.
	Header map[string][]string
	// Peer sends notifications to the sender of the request, until ServeMCP has returned.
	Peer Peer
}

// Principal is a verified identity. The zero Principal means an anonymous user.
type Principal struct {
	ID     string   // stable and unique among the server's users
	Scopes []string // the permissions of the credentials
}

// HasScopes reports whether the credentials have all the scopes.
func (p Principal) HasScopes(scopes ...string) bool {
	for _, scope := range scopes {
		if !slices.Contains(p.Scopes, scope) {
			return false
		}
	}
	return true
}

// Peer is a handler's way back to the sender of one request. Its methods may be called
// concurrently. They fail with [ErrPeerGone] once ServeMCP has returned or the connection is lost.
type Peer interface {
	// Notify sends a notification scoped to the request: progress, a log message, or one of an
	// extension that the client has declared.
	Notify(ctx context.Context, n Notification) error
	// Change sends a change on a subscriptions/listen request; the first must be the
	// acknowledgement. It fails on any other request. The transport adds the subscription's id to
	// the parameters, which must not have one.
	Change(ctx context.Context, c Notification) error
}

// Notification is a one-way message.
type Notification struct {
	Method string
	Params json.RawMessage // an object, or nil
}

// Result answers a request. Set Value or Raw, but not both; neither means an empty object.
type Result struct {
	// Type is empty for a complete result.
	Type ResultType
	// Value is the result; the transport encodes it as an object.
	Value any
	// Raw is the result as a raw object, so that unknown fields survive. The transport replaces the
	// members that belong to it: resultType, the protocol's keys of _meta and, in the core's own
	// results, ttlMs and cacheScope.
	Raw json.RawMessage
	// Cache is the caching hint of a complete result, for methods with cacheable results.
	Cache Cache
	// ServerInfo is the encoded Implementation for the result's _meta; nil for none.
	ServerInfo json.RawMessage
}

// Response is the result of a RoundTrip.
type Response struct {
	// Type is the result's type. It is [ResultComplete] if the peer sent none.
	Type ResultType
	// Raw is the whole result object as received.
	Raw json.RawMessage
	// Cache is the server's caching hint; zero if it sent none.
	Cache Cache
	// Revision is the protocol revision of the exchange.
	Revision Revision
}

// NotificationHandler is a [Handler] that also handles the notifications of clients, except
// cancellation and the handshake. NotifyMCP is called in order of arrival and must not block.
type NotificationHandler interface {
	NotifyMCP(ctx context.Context, n Notification)
}
