// Package cluster makes the replicas of a server one: several processes behind a load balancer that
// gives each request to any of them serve every client as one process would. They share what they
// must through NATS servers with JetStream (nats-server -js).
//
//	c, err := cluster.Open(ctx, "nats://nats.example.com:4222/shop", nil)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer c.Close()
//	s := server.New("shop", "1.0.0", &server.Options{Keys: c.Keys()})
//	defer s.Close()
//	endpoint := streamable.Handler(s, nil)
//	defer endpoint.Shutdown(ctx)
//	http.Handle("/mcp", endpoint)
//
// The keys are all that a server needs: everything that is made with them takes part in the
// cluster. A resource server that offers DPoP needs them, too (resource.Options.Keys).
//
//   - A server (server.Options.Keys) keeps its tasks in the cluster, unless Options.Tasks says
//     otherwise. A change of a list or of a resource at one replica reaches the subscriptions at
//     all. When the process that runs a task ends, the next request about the task runs it again or
//     fails it, as server.TaskOptions.Takeover says. For a client that listens to the task, a
//     replica does so by itself. The replicas of a server have the same name.
//   - An endpoint (streamable.Handler) shares the sessions of clients before 2026-07-28: log
//     levels, subscriptions, the end of a session, answers to live questions, and events to resume
//     from. It takes the keys of its server. If its handler is no server, set
//     Options.Sessions.Keys.
//   - A gateway (gateway.Options.Keys) continues parked calls and its tasks at any replica. If its
//     upstreams need logins, give their auth.Options the store of [Cluster.Logins].
//
// While the cluster cannot be reached, requests that need it fail at once, and all others are
// served. Nothing falls back to the memory of a process. Decision 30 describes what is kept where,
// and what an acknowledgement means.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure a [Cluster]. The zero value is ready to use.
type Options struct {
	// Credentials is the path of a file with the credentials of a NATS user, as nsc makes it. ""
	// means those in the URL, or none.
	Credentials string
	// Logger receives changes of the connection. nil means [slog.Default].
	Logger *slog.Logger
}

// A Cluster is this process's part of a cluster. It is safe for concurrent use.
type Cluster struct{ joined *cluster.Cluster }

// Open joins a cluster. url names the NATS servers, as in nats://user:password@host:4222/NAME,
// several of them with commas between; tls:// encrypts the connection. NAME keeps several clusters
// on the same servers apart: give each server that you run one of its own. Without it, the name is
// "dowel". Open fails if no NATS server answers; a loss of the connection later heals in the
// background. nil options mean the defaults. The caller must call [Cluster.Close].
func Open(ctx context.Context, url string, opts *Options) (*Cluster, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	joined, err := cluster.Open(ctx, cluster.Options{URL: url, Credentials: o.Credentials, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &Cluster{joined}, nil
}

// Keys returns the sealing keys of all replicas. What is made with them takes part in the cluster.
// Do not call their method Replace: use [Cluster.RotateKeys].
func (c *Cluster) Keys() *mcp.Keys { return c.joined.Keys() }

// Logins returns a store for the logins at upstreams of a gateway: a login at one replica is one of
// all, and the replicas refresh its tokens once. The tokens are sealed. local has the logins that
// were made at this machine, which take the place of older ones in the cluster; it may be nil.
func (c *Cluster) Logins(local auth.Store) auth.Store { return c.joined.Logins(local) }

// RotateKeys begins an exchange of the sealing keys at all replicas. It returns at once: the new
// key seals as soon as every replica accepts it, and the old one still opens for 30 days.
func (c *Cluster) RotateKeys(ctx context.Context) error { return c.joined.RotateKeys(ctx) }

// Err returns why the cluster cannot be reached or stores nothing at the moment, or nil. It does
// not wait for the network. All replicas return an error while NATS has no leader, although they
// serve what needs no shared state. So use it for an alarm, and not to take replicas out.
func (c *Cluster) Err() error {
	s := c.joined.State()
	if s.Connected {
		return nil
	}
	if s.Problem == "" {
		return replica.ErrUnreachable
	}
	return fmt.Errorf("%w: %w", replica.ErrUnreachable, errors.New(s.Problem))
}

// Close leaves the cluster. The other replicas notice at once: they run the tasks of this process
// again or fail them, with the next request about a task or for the clients that listen to it.
// Close the endpoints and servers first, or their handlers continue. It always returns nil.
func (c *Cluster) Close() error {
	c.joined.Close()
	return nil
}
