// Package jsonfloor is the floor with encoding/json in place of a scan by hand, as a plain
// implementation without checks would use it.
package jsonfloor

import "github.com/dowel-mcp/dowel/bench/peer"

// Peer is the floor with encoding/json.
type Peer struct{}

// Name implements peer.Peer.
func (Peer) Name() string { return "encoding/json" }

// Module implements peer.Peer.
func (Peer) Module() string { return "" }

// Remarks implements peer.Peer.
func (Peer) Remarks() []string {
	return []string{"It is the floor with encoding/json for envelope, arguments and result; streams, sessions and changes are the floor's own."}
}

// NewServer implements peer.Peer.
func (Peer) NewServer(tools int) peer.Server { return newServer(tools) }
