package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/mcp"
)

// Defaults of [Options].
const (
	defaultParkTimeout = 10 * time.Minute
	defaultMaxParked   = 1000
	defaultPageSize    = 1000
	defaultStartWait   = 3 * time.Second
)

// Options configure a [Gateway]. The zero value is ready.
type Options struct {
	// Info is how the gateway names itself; where its Name is empty, dowel.
	Info mcp.Implementation
	// Instructions go before those of the upstreams.
	Instructions string
	// Keys seal the states of parked calls. nil: random ones.
	Keys *mcp.Keys
	// ParkTimeout bounds how long a call of an upstream waits for what its client answers, default [DefaultPark].
	ParkTimeout time.Duration
	// MaxParked bounds the calls that wait for answers, default [DefaultMaxParked]: a question beyond is refused.
	MaxParked int
	// PageSize is how many things a page of a list holds, default [DefaultPageSize].
	PageSize int
	// StartWait bounds how long lists, and the first words to a client, wait for upstreams that are starting for the first time:
	// many clients ask once and never again. Default [DefaultWait]; negative: not at all.
	StartWait time.Duration
	// Logger takes what belongs to no call. nil: slog.Default.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.Info.Name == "" {
		o.Info.Name, o.Info.Title = "dowel", "dowel"
		if o.Info.Version == "" {
			o.Info.Version = "devel"
		}
	}
	if o.Keys == nil {
		o.Keys = mcp.RandomKeys()
	}
	defaultTo(&o.ParkTimeout, defaultParkTimeout)
	defaultTo(&o.MaxParked, defaultMaxParked)
	defaultTo(&o.PageSize, defaultPageSize)
	if o.StartWait == 0 {
		o.StartWait = defaultStartWait
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

func defaultTo[T int | time.Duration](to *T, byDefault T) {
	if *to <= 0 {
		*to = byDefault
	}
}

// Gateway serves a hub. It is safe for concurrent use.
type Gateway struct {
	*core

	upstreamName string      // of the only upstream that it shows; "" shows all
	relays       bool        // the upstream is a gateway, and its names are not looked up here
	search       *toolSearch // replaces the list of tools; nil lists them
	pages        [4]perCatalog[[]page]
}

// core is what a gateway shares with those of its parts ([Gateway.Only]).
type core struct {
	hub    *hub.Hub
	opts   Options
	info   []byte // encoded
	parked parkedCalls
}

var (
	_ mcp.Handler = (*Gateway)(nil)
	_ mcp.Keyed   = (*Gateway)(nil)
)

// New returns the gateway of all upstreams of the hub. nil options mean the defaults. New copies
// the options.
func New(h *hub.Hub, opts *Options) *Gateway {
	c := &core{hub: h}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.setDefaults()
	c.info, _ = mcp.Encode(c.opts.Info) // a struct of strings
	c.parked.setUp(c.opts)
	return &Gateway{core: c}
}

// Only returns the gateway of one upstream, under its own names. It may be a name that the hub does not have yet.
func (c *core) Only(name string) *Gateway {
	return &Gateway{core: c, upstreamName: name}
}

// Relay returns the gateway of one upstream that is a gateway itself, such as a dowel that is
// already running. Lists and names are that gateway's, asked with each request. name need not be in
// the hub yet.
func (c *core) Relay(name string) *Gateway {
	return &Gateway{core: c, upstreamName: name, relays: true}
}

// Keys implements [mcp.Keyed].
func (c *core) Keys() *mcp.Keys { return c.opts.Keys }

// Close ends the calls that wait for answers, and waits for them.
func (c *core) Close() error {
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

func (g *Gateway) serveMethod(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return g.serveDiscover(ctx)
	case mcp.MethodListTools:
		return g.serveList(ctx, req, hub.Tool)
	case mcp.MethodListPrompts:
		return g.serveList(ctx, req, hub.Prompt)
	case mcp.MethodListResources:
		return g.serveList(ctx, req, hub.Resource)
	case mcp.MethodListResourceTemplates:
		return g.serveList(ctx, req, hub.Template)
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
	}
	return nil, mcp.MethodNotFound(req.Method)
}

// awaitUpstreams waits a little for upstreams that are starting.
func (g *Gateway) awaitUpstreams(ctx context.Context) {
	if g.opts.StartWait < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, g.opts.StartWait)
	defer cancel()
	g.hub.AwaitLists(ctx)
}

// perCatalog makes something once for each catalog.
type perCatalog[T any] struct {
	mu   sync.Mutex
	of   *hub.Catalog
	made T
}

func (l *perCatalog[T]) get(c *hub.Catalog, make func() T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of != c {
		l.of, l.made = c, make()
	}
	return l.made
}
