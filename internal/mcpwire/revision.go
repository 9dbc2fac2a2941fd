package mcpwire

import (
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
)

// MetaMissing is a key in the _meta of a gateway's list. Its value is an array of the upstreams
// with items that are missing from the list: objects with server, status and reason.
const MetaMissing = "dowel/missing"

// CheckPinned returns an error if dowel does not know a revision that the user has pinned. "" means
// that none is pinned. Every dial checks it, before it starts a process.
func CheckPinned(r mcp.Revision) error {
	if r == "" || r.Known() {
		return nil
	}
	return fmt.Errorf("revision %q is pinned, and dowel speaks %v", r, mcp.Revisions())
}
