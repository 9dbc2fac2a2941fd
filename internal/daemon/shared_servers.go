package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/mcp"
)

// joinSharedServers lets servers run once for all replicas, if this process is one.
func (d *Daemon) joinSharedServers() (err error) {
	if d.cluster == nil {
		return nil
	}
	d.shared, err = sharedserver.Join(sharedserver.Options{
		Network: d.cluster, Values: d.cluster.Values(), Serve: d.serveShared, Redial: d.redialShared, Restart: d.restartShared, Logger: d.options.Logger,
	})
	return err
}

// shareInCluster returns the function of [configured.Options], or nil without a cluster.
func (d *Daemon) shareInCluster() func(server string, target any, entry string) any {
	if d.shared == nil {
		return nil
	}
	return func(server string, target any, entry string) any {
		if entry != "" {
			return d.shared.SessionTarget(server, entry, target)
		}
		return d.shared.Target(server, target)
	}
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
		return nil, &hub.DownError{Upstream: server, State: state}
	}
}

// redialShared begins another attempt of a server that could not reach its owner. It reports false
// while the server starts.
func (d *Daemon) redialShared(server string) bool {
	u := d.Hub.Upstream(server)
	return u == nil || hublink.Redial(u, "another replica has run it before")
}

// restartShared starts a server again that this replica runs, for a user at another one.
func (d *Daemon) restartShared(server string) error {
	u := d.Hub.Upstream(server)
	if u == nil {
		return errors.New("it has no such server any more")
	}
	return d.restart(u, "requested by the user of another replica")
}

// restart starts a server again, with what its variables and files contain now.
func (d *Daemon) restart(u *hub.Upstream, cause string) error {
	if s := u.State(); s.Status.Held() {
		return fmt.Errorf("%s is %s: %s", u.Name(), s.Status, s.Cause)
	}
	before := u.Definition().Fingerprint
	d.source.Load(cause)
	if u.Definition().Fingerprint == before {
		u.Restart(cause)
	}
	return nil
}

// restartEverywhere is restart. If another replica runs the server, that one starts it again, and
// this one connects to it again.
func (d *Daemon) restartEverywhere(ctx context.Context, u *hub.Upstream) error {
	const cause = "requested by the user"
	if shared, ok := u.Definition().Target.(*sharedserver.Target); ok && !u.State().Status.Held() {
		if _, err := shared.RestartAtOwner(ctx); err != nil {
			return err
		}
	}
	return d.restart(u, cause)
}
