package mcpwire

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/rawjson"
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

// knownRevisions has the revisions under their names.
var knownRevisions = func() map[string]mcp.Revision {
	known := map[string]mcp.Revision{}
	for _, r := range mcp.Revisions() {
		known[string(r)] = r
	}
	return known
}()

// ReadRevision decodes a raw JSON string that names a revision. ok is false if raw is not a string.
// It allocates nothing for a revision that dowel speaks.
func ReadRevision(raw []byte) (r mcp.Revision, ok bool) {
	if len(raw) >= 2 && raw[0] == '"' {
		if r, ok = knownRevisions[string(raw[1:len(raw)-1])]; ok {
			return r, true
		}
	}
	name, ok := rawjson.String(raw)
	return mcp.Revision(name), ok
}
