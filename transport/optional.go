package transport

// A [Conn] may implement more than Conn itself asks for. The interfaces of this file are found by
// type assertion; a Conn that implements none of them works, at the price that each comment names.
// A Conn that wraps another one must implement them too, or it takes the abilities of the inner
// Conn away.
//
// Package mcp describes other optional interfaces: [mcp.Handler] names the interfaces of handlers,
// and [mcp.Notifier] is for transports.

// TryWriter is implemented by a Conn that can often send a frame without waiting.
//
// The serving side asserts it to send a list change on the goroutine that caused it: without it,
// the change wakes the goroutine of each subscription. The calling side asserts it to answer the
// server's pings and to refuse its requests: without it, each of these answers takes a goroutine.
type TryWriter interface {
	// TryWrite sends frame and reports true, or leaves frame to the caller and reports false if
	// sending would have to wait or the Conn is closed.
	TryWrite(frame []byte) bool
}

// HeaderConn is implemented by a Conn whose frames arrive with header fields, such as one over
// HTTP.
//
// The serving side asserts it to fill the Header of each request. Without it, requests have no
// header and handlers take the transport for one without HTTP.
type HeaderConn interface {
	Conn
	// Header returns the header fields of the frame that Read returned last, under canonical
	// names. Only the goroutine that calls Read calls it. The caller must not change the map.
	Header() map[string][]string
}

// HalfOpener is implemented by a Conn whose peer may stop sending and still receive, such as a
// pair of pipes.
//
// The serving side asserts it when Read has returned io.EOF. If HalfOpen reports true, calls in
// flight have [ServerOptions.DrainTimeout] to be answered. Without it, or if HalfOpen reports
// false, they are cancelled at once.
type HalfOpener interface{ HalfOpen() bool }
