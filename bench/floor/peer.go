// Package floor is the least code that does the same wire work, built on dowel's internal/floor: it
// scans envelopes by hand, decodes the arguments once, encodes the result once, and checks nothing.
package floor

import "github.com/dowel-mcp/dowel/bench/peer"

// Peer is the floor.
type Peer struct{}

// Name implements peer.Peer.
func (Peer) Name() string { return "floor" }

// Module implements peer.Peer.
func (Peer) Module() string { return "" }

// Remarks implements peer.Peer.
func (Peer) Remarks() []string {
	return []string{
		"It writes the same bytes in both eras, those of 2026-07-28, and knows no session but as a key of a map.",
		"To register a tool it appends a copy of a finished description to a list.",
	}
}

// NewServer implements peer.Peer.
func (Peer) NewServer(tools int) peer.Server { return newServer(tools) }
