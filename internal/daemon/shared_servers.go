package daemon

import (
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// joinSharedServers lets servers run once for all replicas, if this process is one.
func (d *Daemon) joinSharedServers() (err error) {
	if d.cluster == nil {
		return nil
	}
	d.shared, err = sharedserver.Join(sharedserver.Options{
		Network: d.cluster, Values: d.cluster.Values(), Serve: d.serveShared, Redial: d.redialShared, Logger: d.options.Logger,
	})
	return err
}

// shareInCluster returns the function of [configured.Options], or nil without a cluster.
func (d *Daemon) shareInCluster() func(server string, target transport.Dialer) any {
	if d.shared == nil {
		return nil
	}
	return func(server string, target transport.Dialer) any { return d.shared.Target(server, target) }
}

// serveShared returns the handler of a server that this replica runs for the others.
func (d *Daemon) serveShared(server string) (mcp.Handler, error) {
	g, u := d.sharing.Load(), d.Hub.Upstream(server)
	if g == nil {
		return nil, sharedserver.ErrStarting
	}
	if u == nil {
		return nil, errors.New("it has no such server any more")
	}
	switch state := u.State(); state.Status {
	case hub.Ready:
		return hublink.ServeUpstream(g, server).(mcp.Handler), nil
	case hub.Starting:
		return nil, sharedserver.ErrStarting
	default:
		return nil, fmt.Errorf("the server %s there", state.Status)
	}
}

// redialShared starts a server again that could not reach its owner. It reports false while the server
// starts.
func (d *Daemon) redialShared(server string) bool {
	u := d.Hub.Upstream(server)
	if u == nil {
		return true
	}
	switch u.State().Status {
	case hub.Starting:
		return false
	case hub.Failed:
		u.Restart("another replica has run it before")
	}
	return true
}
