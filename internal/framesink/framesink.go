// Package framesink passes the frames of connections to dowel's recorder. A context carries the
// sink: the context of a dial for the calling side, and the context of a connection, or of an HTTP
// request, for the serving side. Without a sink in the context, a transport does nothing.
//
// The public way to see frames is a [transport.Tap]. A sink differs from a tap in three ways: it
// belongs to one connection, it learns which call a request belongs to, and it gets header fields
// unmasked, because masking them while the connection waits costs more than the call.
//
// [transport.Tap]: https://pkg.go.dev/github.com/dowel-mcp/dowel/transport#Tap
package framesink

import (
	"context"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Direction is the direction of a frame, seen from this process. It has the values of
// transport.FrameKind.
type Direction uint8

const (
	Sent      Direction = iota // this process has sent the frame
	Received                   // this process has received the frame
	Malformed                  // received, but not a message
)

// Sink receives the frames of one connection. Its methods are called concurrently, and the
// connection waits for them.
type Sink interface {
	// AddFrame adds a frame. data must not be kept after the call. header holds the HTTP header
	// fields with their secrets, or nil; it must not be changed, and may be kept for a second.
	AddFrame(d Direction, data []byte, header map[string][]string)
	// LinkRequest says that the next request with this id is sent for the call of ctx, which may be
	// nil. Only the calling side calls it.
	LinkRequest(ctx context.Context, id jsonrpc.ID)
	// DropRequest says that no response to a request follows: the side that sent it does not wait
	// any more, or the side that received it will not answer. d is the direction of the request.
	// err is nil if the request was cancelled. Only the calling side calls it.
	DropRequest(d Direction, id jsonrpc.ID, err error)
}

type (
	servingKey struct{}
	dialingKey struct{}
)

// WithServing returns a context for connections that this process serves.
func WithServing(ctx context.Context, s Sink) context.Context {
	return context.WithValue(ctx, servingKey{}, s)
}

// Serving returns the sink for the serving side, or nil.
func Serving(ctx context.Context) Sink {
	s, _ := ctx.Value(servingKey{}).(Sink)
	return s
}

// WithDialing returns a context for the dial of one connection.
func WithDialing(ctx context.Context, s Sink) context.Context {
	return context.WithValue(ctx, dialingKey{}, s)
}

// Dialing returns the sink for the calling side, or nil.
func Dialing(ctx context.Context) Sink {
	s, _ := ctx.Value(dialingKey{}).(Sink)
	return s
}
