package daemon

import (
	"github.com/dowel-mcp/dowel/internal/endedsessions"
	"github.com/dowel-mcp/dowel/mcp"
)

// openKeys returns the keys of the state folder, so that sessions and tasks outlive the daemon, and
// opens the file of the sessions that have ended. If the folder cannot keep both, the keys are
// random.
func (d *Daemon) openKeys() *mcp.Keys {
	if d.cluster != nil {
		return d.cluster.Keys()
	}
	keys, err := d.state.SealingKeys(d.options.RenewKey)
	if err == nil {
		d.ended, err = endedsessions.Open(d.state.Folder("ended-sessions"))
	}
	if err == nil {
		return keys
	}
	if d.place.Fallback == nil { // otherwise the user knows that nothing is kept
		d.options.Warn("%v; sessions and tasks of clients end with this run of dowel", err)
	}
	return new(mcp.Keys)
}
