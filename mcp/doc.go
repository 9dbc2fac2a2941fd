// Package mcp holds the words of the Model Context Protocol that both sides share: methods with their types, revisions,
// capabilities, errors, and the four interfaces around which everything is built: [Handler], [Peer], [Transport] and
// [Inbound]. It does no I/O and is neutral between the protocol's two eras.
//
// The specification is at https://modelcontextprotocol.io/specification; comments name its pages.
package mcp
