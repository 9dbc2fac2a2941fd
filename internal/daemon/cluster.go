package daemon

import (
	"context"
	"errors"
	"sync"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/hublink"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/internal/taskengine"
	"github.com/dowel-mcp/dowel/internal/tasks"
)

// joinCluster makes this process a replica, if the options name a cluster. It fails if the cluster
// cannot be reached: a replica on its own would not know the sessions of the others.
func joinCluster(ctx context.Context, o Options) (*cluster.Cluster, error) {
	if o.Cluster == "" {
		return nil, nil
	}
	c, err := cluster.Open(ctx, cluster.Options{URL: o.Cluster, Credentials: o.ClusterCredentials, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	if o.RenewKey {
		if err := c.RotateKeys(ctx); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// checkClusterAccess returns an error if clients would need another token at each replica.
func (d *Daemon) checkClusterAccess() error {
	if d.cluster == nil || d.access.Open() || d.access.UsesAuth() || d.settings.Token != "" {
		return nil
	}
	return errors.New("every replica must accept the same clients: with --cluster, set gateway.token or gateway.auth in dowel.json, " +
		`as in {"gateway": {"token": "${GATEWAY_TOKEN}"}}`)
}

// clusterState describes the cluster for the user. It returns nil without one.
func (d *Daemon) clusterState() *control.Cluster {
	if d.cluster == nil {
		return nil
	}
	return &control.Cluster{State: d.cluster.State()}
}

// ClusterSync implements [control.Controller].
func (d *Daemon) ClusterSync(ctx context.Context) replica.Sync {
	if d.cluster == nil {
		return replica.SyncUnknown
	}
	return d.cluster.Sync(ctx)
}

// logins returns the logins at servers, of all replicas or of this machine.
func (d *Daemon) logins() auth.Store {
	if d.cluster == nil {
		return d.options.Logins
	}
	return d.cluster.Logins(d.options.Logins)
}

// Logout implements [control.Controller]. The entry of the server has what the authorization server
// asks for, if the command means the same login.
func (d *Daemon) Logout(ctx context.Context, l control.Login) error {
	if l.Name != "" {
		if to, err := d.source.Login(l.Name, nil); err == nil && to.Server() == l.URL && to.Account() == l.Account {
			return to.Logout(ctx)
		}
	}
	to, err := auth.NewTransport(l.URL, &auth.Options{Account: l.Account, Store: d.logins()})
	if err != nil {
		return err
	}
	return to.Logout(ctx)
}

// openTasks returns the store of tasks, of all replicas or of this machine.
func (d *Daemon) openTasks() tasks.Store {
	if d.cluster == nil {
		return taskengine.OnDisk(d.state.Folder("tasks"))
	}
	return d.cluster.Tasks()
}

// sharedChoices are the user's choices of a replica. Accepted definitions count for all replicas.
type sharedChoices struct {
	configured.Choices
	cluster *cluster.Cluster
}

// DefinitionLog implements [configured.Choices].
func (c *sharedChoices) DefinitionLog(file, server string) client.DefinitionLog {
	return c.cluster.Definitions(file, server, c.Choices.DefinitionLog(file, server))
}

// choices returns the user's choices.
func (d *Daemon) choices() configured.Choices {
	if d.cluster == nil {
		return d.state
	}
	return &sharedChoices{d.state, d.cluster}
}

// followReplicas applies what other replicas have changed.
func (d *Daemon) followReplicas() {
	if d.cluster == nil {
		return
	}
	d.followValues(cluster.LoginPrefix, func(_ string, u *hub.Upstream) {
		if s := u.State(); s.Status == hub.NeedsLogin && s.LoginURL == "" {
			u.Restart("a login has changed at a replica")
		}
	})
	d.followValues(cluster.DefinitionPrefix, func(key string, u *hub.Upstream) { // offers accepted ones
		if key == "" || cluster.HasDefinitions(key, u.Definition().Log) {
			hublink.CompareDefinitions(u)
		}
	})
}

// changedKeys are the keys of values that have changed and are not applied yet.
type changedKeys struct {
	wake chan struct{} // has room for one

	mu   sync.Mutex
	keys map[string]bool // guarded by mu
}

func (c *changedKeys) addKey(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[key] = true
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *changedKeys) take() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.keys
	c.keys = map[string]bool{}
	return all
}

// followValues calls apply with the key of each value of all replicas that has changed, and each
// server. The key is empty after a loss of the connection.
func (d *Daemon) followValues(prefix string, apply func(key string, u *hub.Upstream)) {
	changed := &changedKeys{wake: make(chan struct{}, 1), keys: map[string]bool{}}
	stop, err := d.cluster.Values().Watch(prefix, changed.addKey)
	if err != nil {
		d.options.Logger.Warn("changes of other replicas are noticed late", "what", prefix, "err", err)
		return
	}
	d.background.Go(func() {
		defer stop()
		for {
			select {
			case <-changed.wake:
			case <-d.ctx.Done():
				return
			}
			for key := range changed.take() {
				for _, u := range d.Hub.Upstreams() {
					apply(key, u)
				}
			}
		}
	})
}
