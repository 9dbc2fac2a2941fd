// Package dowel adapts dowel to the benchmark.
package dowel

import "github.com/dowel-mcp/dowel/bench/peer"

// Peer is dowel.
type Peer struct{}

// Name implements peer.Peer.
func (Peer) Name() string { return "dowel" }

// Module implements peer.Peer.
func (Peer) Module() string { return "github.com/dowel-mcp/dowel" }

// Remarks implements peer.Peer.
func (Peer) Remarks() []string {
	return []string{
		"It answers by an event stream only where the client takes nothing else or the call takes longer than a second: for the event-stream rows the `Accept` header is narrowed on the way in.",
		"Its cache of lists is off, or nothing would be asked a second time; so is the wait that joins bursts of list changes (`ListInterval`).",
		"It keeps the schema of a Go type, as go-sdk can: the tools of different types are registered once in each process, those of one type again and again.",
	}
}

// NewServer implements peer.Peer.
func (Peer) NewServer(tools int) peer.Server { return newServer(tools) }

// NewTypedServer implements peer.Typed.
func (Peer) NewTypedServer() peer.Server { return newTypedServer() }
