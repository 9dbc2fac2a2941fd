// Package httpwire holds the code that both transports over HTTP share, transport/streamable and
// transport/sse. The server side reads bodies ([BodyReader]) and answers outside the protocol
// ([Refuse], [WriteDocument]). The client side reads a URL, its header fields and its HTTP client
// ([Endpoint]) and keeps credentials away from other origins ([GuardRedirects], [SameOrigin]).
//
// It is a package of its own so that programs without HTTP do not link net/http.
package httpwire
