// Package gosdk adapts the official Go SDK to the benchmark.
package gosdk

import "github.com/dowel-mcp/dowel/bench/peer"

// Peer is the official Go SDK.
type Peer struct{}

// Name implements peer.Peer.
func (Peer) Name() string { return "go-sdk" }

// Module implements peer.Peer.
func (Peer) Module() string { return "github.com/modelcontextprotocol/go-sdk" }

// Remarks implements peer.Peer.
func (Peer) Remarks() []string {
	return []string{
		"Over HTTP it serves 2026-07-28 by handlers with `Stateless: true` only, and sessions by those without; each row takes the one for its era.",
		"It reports list changes 10 ms later, always, to join bursts. So that this wait is not measured, its change is that of a resource (`ResourceUpdated`), which goes out at once.",
	}
}

// NewServer implements peer.Peer.
func (Peer) NewServer(tools int) peer.Server { return newServer(tools) }

// NewTypedServer implements peer.Typed.
func (Peer) NewTypedServer() peer.Server { return newTypedServer() }
