package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/mcp"
)

// Options configure a [Server]. The zero value is ready.
type Options struct {
	// Info describes the server further. [New] sets its Name and Version.
	Info mcp.Implementation
	// Instructions tell a model how to use the server.
	Instructions string
	// Keys seal cursors and request state. The default is random, so that only this process can
	// open what it sealed. Replicas of one server must share keys; the keys of package cluster make
	// them share everything else, too.
	Keys *mcp.Keys
	// Extensions are declared to clients. The server understands their listen filters and input
	// requests.
	Extensions []mcp.Extension
	// Experimental is declared as the server's experimental capabilities: an object for each name.
	Experimental map[string]json.RawMessage
	// Declare names kinds that the server offers even before the first item of the kind is added.
	// Kinds that are not offered are not declared, and their methods are not found.
	Declare []Kind
	// PageSize bounds the items on a page of a list. The default is 1000.
	PageSize int
	// Cache holds the caching hints of server/discover, of the four lists and of resources/read, by
	// method; [ResourceOptions] can replace the hint for one resource. [New] panics on another
	// method. Without a hint, a result is stale at once. An empty scope means public for lists and
	// discovery, and private for resources/read, for lists filtered by Visible, and for computed
	// resources. With Visible, lists and resources are never public. The result of a retry with
	// answers is never cacheable. Methods of extensions with cacheable results are skills/list and
	// skills/get; an empty scope means private for them.
	Cache map[string]mcp.Cache
	// Visible decides which items a principal may see; nil shows all. A hidden item does not exist
	// for the principal: not in lists, calls, reads, completions or changes. The result may depend
	// on the principal and the item, but not on the connection. Visible is called often and
	// concurrently, so it must be quick. In a cluster (package cluster) it also sees items of other
	// replicas that this one lacks: they have a Kind, a Name, and a Meta with the types that
	// JSON gives, such as []any and float64.
	Visible func(ctx context.Context, p mcp.Principal, item Item) bool
	// Scopes returns the permissions that a request over HTTP needs, besides the scopes of its
	// tool; nil means none. It is called for every method, concurrently, and must be quick.
	Scopes func(ctx context.Context, p mcp.Principal, method string, params json.RawMessage) []string
	// ListInterval is the least time between two notifications of list changes on a subscription.
	// The first change of a burst is sent at once, the others together. The default is
	// 10 ms; a negative value means no delay.
	ListInterval time.Duration
	// StateTTL is how long a client may take to answer before it must start the request again. The
	// default is 15 minutes. It does not apply to legacy clients: there the call waits for
	// its answers, and the transport's AskTimeout bounds that.
	StateTTL time.Duration
	// MaxState bounds the request state that a client must carry, in bytes. The default is
	// 16 KiB.
	MaxState int
	// Limit bounds how often a principal may call tools and complete arguments. The default is
	// 10,000 times a second; a negative PerSecond means no limit. A call counts once, however many
	// rounds of questions it takes. Further rounds have their own limit, 16 times as high, because
	// a client could repeat them.
	Limit Limit
	// MaxTasks bounds the tasks of one principal that are kept, each until its time to live is
	// over. The default is 1,000. Beyond it, a tool that may make tasks does its work within the
	// call, and a tool that must make them fails.
	MaxTasks int
	// Tasks keeps the tasks. The default is the cluster, with the keys of package cluster, and else
	// the memory of this process. With a cluster, or a store on a disk, as of package taskstore,
	// tasks outlive the process: a task that waits for an answer continues with it, and
	// [TaskOptions].Takeover says what becomes of one that worked. Close does not close the store.
	Tasks tasks.Store
	// NoLogging withdraws the logging capability. [Log] then discards everything.
	NoLogging bool
	// RedactErrors replaces the text of an error that a tool's function returns by "the tool
	// failed", and logs it instead. An [mcp.Error] keeps its text.
	RedactErrors bool
	// OnNotification handles the clients' notifications that have no function of their own: see the
	// function [OnNotification], which says how it is called. nil ignores them.
	OnNotification func(ctx context.Context, n mcp.Notification)
	// Logger receives details that clients must not see. nil means slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Keys == nil {
		o.Keys = new(mcp.Keys)
	}
	if o.PageSize <= 0 {
		o.PageSize = 1000
	}
	if o.ListInterval == 0 {
		o.ListInterval = 10 * time.Millisecond
	}
	if o.StateTTL <= 0 {
		o.StateTTL = 15 * time.Minute
	}
	if o.MaxState <= 0 {
		o.MaxState = 16 << 10
	}
	if o.Limit == (Limit{}) {
		o.Limit = defaultLimit
	}
	if o.MaxTasks <= 0 {
		o.MaxTasks = 1000
	}
	if o.Tasks == nil {
		o.Tasks = tasks.Shared(o.Keys)
	}
	if o.Tasks == nil {
		o.Tasks = &tasks.Memory{}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

// listScope completes the caching hint of a list. All pages of a list have the same scope.
func (s *Server) listScope(c mcp.Cache, computed bool) mcp.Cache {
	if s.opts.Visible != nil || computed {
		c.Scope = mcp.CachePrivate
	} else if c.Scope == "" {
		c.Scope = mcp.CachePublic
	}
	return c
}
