package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Info holds what the server says of itself beyond name and version, which [New] sets.
	Info mcp.Implementation
	// Instructions tell a model how to use the server.
	Instructions string
	// Keys seal cursors and request state. The default is random: what one process sealed, no other opens. Replicas of one
	// server share keys.
	Keys *mcp.Keys
	// Extensions are declared, and their listen filters and input requests understood.
	Extensions []mcp.Extension
	// Experimental is declared as the server's experimental capabilities: a name and an object each.
	Experimental map[string]mcp.Object
	// Declare names kinds that are offered though there are none yet. A kind is also offered from the moment on that
	// the first of it is added. What is not offered is not declared, and its methods are not found.
	Declare []Kind
	// PageSize is how many items a page of a list holds at most, default [DefaultPageSize].
	PageSize int
	// Cache holds the caching hints of results.
	Cache CacheOptions
	// Visible says which items a principal sees; nil is all. What is not visible does not exist for the principal: in lists,
	// calls, reads, completions and changes alike. It may depend on the principal alone, never on the connection, is
	// called often and concurrently, and must be quick.
	Visible func(ctx context.Context, p mcp.Principal, item Item) bool
	// ListInterval is the least time between two rounds of list changes on a subscription, default [DefaultListInterval]: the
	// first of a burst is delivered at once, the others together. Negative: no time.
	ListInterval time.Duration
	// StateTTL is how long a client may take to answer before it has to begin anew, default [DefaultStateTTL]. In the legacy
	// era, where a call waits for its answers, the transport's AskTimeout says so instead.
	StateTTL time.Duration
	// MaxState bounds the request state that a client is asked to carry, in bytes, default [DefaultMaxState].
	MaxState int
	// Limit bounds how often a principal may call tools and complete arguments. The default is no limit. A call that asks
	// counts once, however many rounds it takes; its further rounds have a limit of their own, 16 times as wide, because a
	// client could repeat one.
	Limit Limit
	// NoLogging withdraws the logging capability; [Log] then discards everything.
	NoLogging bool
	// NoRecover lets the panics of handlers pass to who calls ServeMCP. Transports contain them too.
	NoRecover bool
	// RedactErrors replaces the text of plain errors of tools by a general one, and logs the text instead.
	RedactErrors bool
	// Logger takes what clients must not see; nil is slog.Default.
	Logger *slog.Logger
}

// CacheOptions are the caching hints per method; a resource can have its own. The zero value makes every result stale at
// once. An empty scope is public for lists and discovery, but private for lists where [Options.Visible] is set or a
// provider computes resources, and for resources/read. With [Options.Visible] no list and no resource is public, whatever a
// hint says. Results of a retry are never cacheable.
type CacheOptions struct {
	Discover, Tools, Prompts, Resources, ResourceTemplates, ReadResource mcp.Cache
}

// Defaults of [Options].
const (
	DefaultPageSize = 1000
	DefaultStateTTL = 15 * time.Minute
	DefaultMaxState = 16 << 10

	DefaultListInterval = 10 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Keys == nil {
		o.Keys = mcp.RandomKeys()
	}
	if o.PageSize <= 0 {
		o.PageSize = DefaultPageSize
	}
	if o.ListInterval == 0 {
		o.ListInterval = DefaultListInterval
	}
	if o.StateTTL <= 0 {
		o.StateTTL = DefaultStateTTL
	}
	if o.MaxState <= 0 {
		o.MaxState = DefaultMaxState
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// listScope completes the hint of a list, all pages of which have one scope.
func (s *Server) listScope(c mcp.Cache, computed bool) mcp.Cache {
	if s.opts.Visible != nil || computed {
		c.Scope = mcp.CachePrivate
	} else if c.Scope == "" {
		c.Scope = mcp.CachePublic
	}
	return c
}
