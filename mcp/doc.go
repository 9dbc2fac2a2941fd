// Package mcp defines the vocabulary of the Model Context Protocol: the methods with their
// parameters and results, revisions, capabilities and errors. It does no I/O, and it is neutral
// between the protocol's two eras: the legacy era, in which a handshake opens a session, and the
// modern era, in which each request carries its version and capabilities (from 2026-07-28 on).
//
// Most programs use package server or package client and meet this package as the types of values:
//
//	func forecast(ctx context.Context, in City) ([]mcp.Content, error) {
//		return []mcp.Content{mcp.Text("Rain"), mcp.Image(chart, "image/png")}, nil
//	}
//
// Four interfaces connect the other packages. A [Handler] answers requests: a server, a middleware,
// a gateway. A [Transport] sends requests to a peer, like an http.RoundTripper. A [Peer] is a
// handler's way back to the sender of a request, and [Inbound] receives the requests and
// notifications that a transport's peer starts itself.
//
// The specification is at https://modelcontextprotocol.io/specification. Comments name its pages,
// for example (server/tools).
package mcp
