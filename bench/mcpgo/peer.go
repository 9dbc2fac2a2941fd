// Package mcpgo is mark3labs/mcp-go as it is measured.
package mcpgo

import "github.com/dowel-mcp/dowel/bench/peer"

// Peer is mark3labs/mcp-go.
type Peer struct{}

// Name implements peer.Peer.
func (Peer) Name() string { return "mcp-go" }

// Module implements peer.Peer.
func (Peer) Module() string { return "github.com/mark3labs/mcp-go" }

// Remarks implements peer.Peer.
func (Peer) Remarks() []string {
	return []string{
		"Input is validated because the server asks for it (`WithInputSchemaValidation`); by default it is not.",
		"In memory nothing is handed to another goroutine: the caller's runs the server, and encodes and decodes on the way. Changes go to memory clients as Go values, without JSON.",
		"Its sessions are kept, as those of the others are (`WithStateful`); by default it invents ids and knows none of them again.",
		"Its tools are built by options, as its examples do it, so that no schema is inferred, except where the tools have different types; and a schema is compiled at the tool's first call, not when the tool is registered.",
		"Notifications that find a client's queue full are dropped.",
	}
}

// NewServer implements peer.Peer.
func (Peer) NewServer(tools int) peer.Server { return newServer(tools) }

// NewTypedServer implements peer.Typed.
func (Peer) NewTypedServer() peer.Server { return newTypedServer() }
