// Package peers lists the implementations that are measured.
package peers

import (
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/bench/dowel"
	"github.com/dowel-mcp/dowel/bench/floor"
	"github.com/dowel-mcp/dowel/bench/gosdk"
	"github.com/dowel-mcp/dowel/bench/jsonfloor"
	"github.com/dowel-mcp/dowel/bench/mcpgo"
	"github.com/dowel-mcp/dowel/bench/peer"
)

// All are the implementations in the order of the tables: the floors, dowel, the peers.
var All = []peer.Peer{floor.Peer{}, jsonfloor.Peer{}, dowel.Peer{}, gosdk.Peer{}, mcpgo.Peer{}}

// Strict are floors that only some of the work has.
var Strict = []peer.Peer{floor.OneHop{}, floor.Direct{}}

// Named returns the implementation of that name.
func Named(name string) (peer.Peer, error) {
	for _, p := range slices.Concat(All, Strict) {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("there is no implementation %q", name)
}
