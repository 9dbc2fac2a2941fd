package mcp

import (
	"context"
	"errors"
)

// Transport carries requests to a server, as http.RoundTripper does for HTTP. It is safe for concurrent use.
type Transport interface {
	// RoundTrip sends the request and waits for its result. The error is an [*Error] for what the peer answered, the
	// cause of ctx if it ended (the request is then cancelled at the peer), and wraps [ErrConnection] where the
	// connection failed. An input_required result is returned as it is.
	//
	// A subscriptions/listen request returns when the subscription has ended; req.Notify receives its changes.
	RoundTrip(ctx context.Context, req *Request) (*Response, error)
	// Close ends the connection and what was started for it, and waits for it. Calls in flight fail.
	Close() error
}

// Inbound is what a client transport is given when it is dialed.
type Inbound interface {
	// Handler answers what legacy servers ask live; the same Handler answers input requests.
	Handler
	// Notify takes what belongs to no RoundTrip. It must not block.
	Notify(n Notification)
	// Down is called once, when the connection is lost by anything but Close. It must not call Close, which waits for it.
	Down(err error)
}

// Errors of transports, for errors.Is.
var (
	// ErrConnection is wrapped by every error that says that the connection, not the request, failed.
	ErrConnection = errors.New("the connection failed")
	// ErrClosed is what calls fail with after Close.
	ErrClosed = errors.New("closed")
	// ErrPeerGone is what a Peer answers once its request has been answered or cancelled.
	ErrPeerGone = errors.New("the request is over")
)

// Notifier is a [Transport] that can send notifications of its client's own, such as that its roots have changed.
type Notifier interface {
	Notify(ctx context.Context, n Notification) error
}
