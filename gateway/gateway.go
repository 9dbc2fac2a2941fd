package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/catalog"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Defaults of [Options].
const (
	defaultParkTimeout = 10 * time.Minute
	defaultPageSize    = 1000
	defaultStartWait   = 3 * time.Second
)

// Options configure a [Gateway]. The zero value is ready for use.
type Options struct {
	// Info is how the gateway introduces itself. An empty Name means dowel.
	Info mcp.Implementation
	// Instructions come before the instructions of the upstreams.
	Instructions string
	// Keys seal the ids of tasks and the states of parked calls. For clients with a principal they
	// also seal the states of modern upstreams. nil means random keys. The keys of package cluster
	// make the gateway one of several replicas.
	Keys *mcp.Keys
	// ParkTimeout limits how long an upstream's call waits for an answer of its client. 0 means 10
	// minutes.
	ParkTimeout time.Duration
	// Quota limits the calls that wait for answers, and the results that wait for their clients.
	// nil means the quota that the process shares.
	Quota *transport.Quota
	// PageSize is the number of items on a page of a list. 0 means 1000.
	PageSize int
	// StartWait limits how long lists and server/discover wait for upstreams that start for the
	// first time: many clients list once and never again. 0 means 3 seconds, negative does not
	// wait.
	StartWait time.Duration
	// Scopes returns the scopes that a client with an access token (package auth/resource) needs to
	// use an upstream: its tools, prompts, resources and completions. Lists show them to all
	// clients. nil means none. Scopes is called concurrently.
	Scopes func(server string) []string
	// Login returns the address of a page on which the user of a request logs in at an
	// upstream that has refused the request for lack of a login. ctx is the context of the
	// request. With wait, Login waits until a login that was begun is over, and returns its
	// error. An empty address means that the user cannot log in there. nil means that no user
	// can. Login is called concurrently.
	Login func(ctx context.Context, server string, wait bool) (address string, err error)
	// TaskAfter makes a task (extension io.modelcontextprotocol/tasks) of each call of a tool that
	// takes longer, if the client has declared the extension. The call then continues without its
	// request. 0 means that only upstreams make tasks of calls.
	TaskAfter time.Duration
	// Tasks keeps the tasks of the gateway's own. nil keeps them in the cluster, with the keys of
	// package cluster, and else in the memory of this process. With a cluster, or a store on a
	// disk, as of package taskstore, the result of a task outlives the process; a task that had not
	// ended has failed then, because its call has ended. Close does not close the store.
	Tasks tasks.Store
	// Logger receives messages that belong to no call. nil means [slog.Default].
	Logger *slog.Logger
}

// setDefaults replaces zero values.
func (o *Options) setDefaults() {
	if o.Info.Name == "" {
		o.Info.Name, o.Info.Title = "dowel", "dowel"
		if o.Info.Version == "" {
			o.Info.Version = "devel"
		}
	}
	if o.Keys == nil {
		o.Keys = new(mcp.Keys)
	}
	if o.Tasks == nil {
		o.Tasks = tasks.Shared(o.Keys)
	}
	defaultTo(&o.ParkTimeout, defaultParkTimeout)
	o.Quota = quota.Or(o.Quota)
	defaultTo(&o.PageSize, defaultPageSize)
	if o.StartWait == 0 {
		o.StartWait = defaultStartWait
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// defaultTo sets a value that is not positive.
func defaultTo[T int | time.Duration](to *T, byDefault T) {
	if *to <= 0 {
		*to = byDefault
	}
}

// Gateway serves a hub as an [mcp.Handler]. It is safe for concurrent use. The gateways that its
// methods return share its parked calls: closing one closes all.
type Gateway struct {
	*core

	upstreamName string      // the only upstream that it shows; "" shows all
	relays       bool        // the upstream is a gateway, which knows its own names
	isOwner      bool        // it serves the gateways of other replicas, which seal the states of requests
	search       *toolSearch // replaces the list of tools; nil lists all
	pages        [4]perCatalog[[]page]
	taskPages    perCatalog[[]page] // of tools, for clients of 2025-11-25
}

// core is the part that a gateway shares with the gateways made from it.
type core struct {
	hub    *hub.Hub
	opts   Options
	info   []byte // encoded
	parked parkedCalls
	hosted hostedTasks
	failed failedTasks
	feeds  taskFeeds
	states *mcp.Sealer // seals the request states of modern upstreams
	tasks  *mcp.Sealer // seals the ids of tasks
}

var (
	_ mcp.Handler                   = (*Gateway)(nil)
	_ interface{ Keys() *mcp.Keys } = (*Gateway)(nil)
)

// New returns the gateway of all upstreams of the hub. nil options mean the defaults. New copies
// the options.
func New(h *hub.Hub, opts *Options) *Gateway {
	c := &core{hub: h}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.setDefaults()
	c.info, _ = mcp.Encode(c.opts.Info) // strings can be encoded
	c.parked.setUp(c.opts)
	c.parked.replicas.join(c)
	c.hosted.setUp(c)
	c.states, c.tasks = c.opts.Keys.For("upstream state"), c.opts.Keys.For("task")
	return &Gateway{core: c}
}

// Only returns a gateway that shows one upstream under its own names. The hub need not have the
// upstream yet.
func (c *core) Only(name string) *Gateway {
	return &Gateway{core: c, upstreamName: name}
}

// Relay returns the gateway of one upstream that is a gateway itself, such as a dowel that is
// already running. Lists and names are that gateway's, asked with each request. name need not be in
// the hub yet.
func (c *core) Relay(name string) *Gateway {
	return &Gateway{core: c, upstreamName: name, relays: true}
}

// Keys returns the keys of [Options]. Transports seal their sessions with them.
func (c *core) Keys() *mcp.Keys { return c.opts.Keys }

// Close cancels all parked calls, and waits for them. It always returns nil.
func (c *core) Close() error {
	c.hosted.closeAll()
	c.parked.closeAll()
	return nil
}

// ServeMCP implements [mcp.Handler].
func (g *Gateway) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	res, err := g.serveMethod(ctx, req)
	if res != nil {
		res.ServerInfo = g.info
	}
	return res, err
}

// serveMethod answers a request by its method.
func (g *Gateway) serveMethod(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return g.serveDiscover(ctx, req)
	case mcp.MethodListTools:
		return g.serveList(ctx, req, catalog.Tool)
	case mcp.MethodListPrompts:
		return g.serveList(ctx, req, catalog.Prompt)
	case mcp.MethodListResources:
		return g.serveList(ctx, req, catalog.Resource)
	case mcp.MethodListResourceTemplates:
		return g.serveList(ctx, req, catalog.Template)
	case mcp.MethodCallTool:
		return g.callTool(ctx, req)
	case mcp.MethodGetPrompt:
		return g.getPrompt(ctx, req)
	case mcp.MethodReadResource:
		return g.readResource(ctx, req)
	case mcp.MethodComplete:
		return g.completeArgument(ctx, req)
	case mcp.MethodListen:
		return g.serveListen(ctx, req)
	case mcpwire.MethodListSkills:
		return g.listSkills(ctx, req)
	case mcpwire.MethodGetSkill:
		return g.getSkill(ctx, req)
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		if mayHaveTasks(req) && (req.Revision != mcp.Revision20251125 || declaresTasks(req)) {
			return g.serveTask(ctx, req)
		}
	}
	return nil, mcp.MethodNotFound(req.Method)
}

// awaitUpstreams waits for upstreams that start for the first time, at most for StartWait.
func (g *Gateway) awaitUpstreams(ctx context.Context) {
	if g.opts.StartWait < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.opts.StartWait)
	defer cancel()
	g.hub.AwaitLists(ctx)
}

// perCatalog caches a value that depends on the catalog alone.
type perCatalog[T any] struct {
	mu   sync.Mutex
	of   *itemCatalog
	made T
}

// get returns the value for a catalog, and makes it if it is not the cached one.
func (l *perCatalog[T]) get(c *itemCatalog, make func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != c {
		l.of, l.made = c, make()
	}
	return l.made
}
