package daemon

import "github.com/dowel-mcp/dowel/mcp"

// openKeys returns the keys of the state folder, so that sessions and tasks outlive the daemon. If the
// folder cannot keep them, they are random.
func (d *Daemon) openKeys() *mcp.Keys {
	if d.cluster != nil {
		return d.cluster.Keys()
	}
	keys, err := d.state.SealingKeys(d.options.RenewKey)
	if err == nil {
		return keys
	}
	if d.place.Fallback == nil { // otherwise the user knows that nothing is kept
		d.options.Warn("%v; sessions and tasks of clients end with this run of dowel", err)
	}
	return new(mcp.Keys)
}
