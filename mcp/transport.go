package mcp

import (
	"context"
	"errors"
)

// Transport sends requests to a server, like an http.RoundTripper. It may be used concurrently.
type Transport interface {
	// RoundTrip sends the request and waits for its result. The error is an [*Error] if the peer
	// answered with one, and the cause of ctx if that ended; the request is then cancelled at the
	// peer. It wraps [ErrConnection] if the connection failed. An input_required result is returned
	// unchanged.
	//
	// A subscriptions/listen request returns when the subscription has ended; req.Notify receives
	// its changes.
	RoundTrip(ctx context.Context, req *Request) (*Response, error)
	// Close ends the connection and the processes started for it, and waits for them. Running calls
	// fail.
	Close() error
}

// Inbound receives the messages that a server starts itself. A client passes it to a transport at
// the dial.
type Inbound interface {
	// Handler answers the questions of legacy servers. The same Handler answers input requests.
	Handler
	// Notify handles a notification that belongs to no RoundTrip. It must not block.
	Notify(n Notification)
	// Down is called once when the connection is lost, unless Close ended it. It must not call
	// Close, which waits for it.
	Down(err error)
}

// Errors of transports. Use [errors.Is] to find them.
var (
	// ErrConnection is wrapped by each error that means a failure of the connection, not of the
	// request.
	ErrConnection = errors.New("the connection failed")
	// ErrClosed is the error of calls after Close.
	ErrClosed = errors.New("closed")
	// ErrPeerGone is the error of a Peer after its request was answered or cancelled.
	ErrPeerGone = errors.New("the request is over")
)

// Notifier is a [Transport] that can send notifications to the server, such as
// [NotificationRootsChanged].
type Notifier interface {
	Notify(ctx context.Context, n Notification) error
}
