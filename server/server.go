package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/replica"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is an MCP server: an [mcp.Handler] that serves the tools, resources and prompts added to
// it. One Server serves any number of clients of all revisions on any number of transports at the
// same time.
type Server struct {
	opts         Options
	info         json.RawMessage // the encoded Implementation
	vocabulary   mcpwire.Vocabulary
	cursors      *mcp.Sealer
	states       *mcp.Sealer
	instance     [8]byte  // distinguishes this Server's cursors from its replicas' cursors
	callLimiter  *limiter // of calls
	roundLimiter *limiter // of the further rounds of calls that ask

	catalog       catalog
	methods       extraMethods
	notifications notificationFuncs
	subscriptions subscriptions
	tasks         taskRuns
	taskLooks     taskLooks
	replicas      replicaChanges

	middlewareMu sync.Mutex // held while middleware is added
	middleware   []mcp.Middleware
	chain        atomic.Pointer[mcp.Handler] // nil without middleware
}

// New returns a server without any items. A nil opts is the zero [Options]. New panics if the
// options name a method or an extension that cannot exist.
func New(name, version string, opts *Options) *Server {
	var o Options
	if opts != nil {
		o = *opts
	}
	o = o.withDefaults()
	o.Info.Name, o.Info.Version = name, version
	for method := range o.Cache {
		if !mcpwire.Cacheable(method) {
			panic("server: Options.Cache: results of " + method + " cannot be cached: want server/discover, a list or resources/read")
		}
	}
	if err := mcpwire.CheckExtensions(o.Extensions); err != nil {
		panic("server: Options.Extensions: " + err.Error())
	}
	o.Cache = maps.Clone(o.Cache)
	info, err := mcp.Encode(&o.Info)
	if err != nil {
		panic(fmt.Sprintf("server: Options.Info: %v", err))
	}
	s := &Server{
		opts: o, info: info, vocabulary: mcpwire.WithTasks(o.Extensions),
		cursors: o.Keys.For("cursor"), states: o.Keys.For("state"), callLimiter: newLimiter(o.Limit),
		roundLimiter: newLimiter(o.Limit.widen(roundsPerCall)),
	}
	_, _ = rand.Read(s.instance[:]) // never fails (crypto/rand)
	s.catalog.init(o.Declare)
	s.subscriptions.init(o.ListInterval)
	s.tasks.init(o.Tasks)
	s.replicas.joinReplicas(s)
	if o.Limit != defaultLimit { // which is so high that no replica needs to know of the others
		s.callLimiter.share(replica.Of(o.Keys), name)
	}
	return s
}

// innermost is the server without its middleware.
type innermost struct{ *Server }

func (c innermost) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return c.dispatch(ctx, req)
}

func (c innermost) NotifyMCP(ctx context.Context, n mcp.Notification) { c.handleNotification(ctx, n) }

// Use adds middleware around the server. The first of mws sees a request first, but after the
// middleware of earlier calls. [mcp.Chain] says what applies to notifications.
func (s *Server) Use(mws ...mcp.Middleware) {
	s.middlewareMu.Lock()
	defer s.middlewareMu.Unlock()
	s.middleware = append(s.middleware, mws...)
	h := mcp.Chain(innermost{s}, s.middleware...)
	s.chain.Store(&h)
}

// Keys returns the keys of the server. Transports that seal data of their own use them too.
func (s *Server) Keys() *mcp.Keys { return s.opts.Keys }

// Extensions returns the extensions of [Options] and the extension of tasks. Transports use them
// unless they are given others.
func (s *Server) Extensions() []mcp.Extension { return s.vocabulary }

// Close ends all subscriptions, present and future, with a result, which tells clients that the end
// is intended. It cancels the handlers of tasks, and their tasks fail; in a cluster, and with a
// store on disk, other processes may continue them. No task begins after it. Other requests are
// still served. A server with the keys of a cluster must be closed, or the cluster holds it until
// its own end. Close does not wait for handlers and always returns nil.
func (s *Server) Close() error {
	s.subscriptions.close()
	s.tasks.close()
	s.replicas.leave()
	s.callLimiter.endSharing()
	return nil
}

// ServeMCP implements [mcp.Handler]. If a handler panics, ServeMCP logs the panic and returns an
// internal error.
func (s *Server) ServeMCP(ctx context.Context, req *mcp.Request) (res *mcp.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, s.panicError(ctx, req, p)
		}
	}()
	if chain := s.chain.Load(); chain != nil {
		res, err = (*chain).ServeMCP(ctx, req)
	} else {
		res, err = s.dispatch(ctx, req)
	}
	if res != nil && res.ServerInfo == nil {
		signed := *res // the handler may share res
		signed.ServerInfo = s.info
		res = &signed
	}
	return res, err
}

func (s *Server) panicError(ctx context.Context, req *mcp.Request, p any) error {
	s.opts.Logger.ErrorContext(ctx, "a handler panicked", "method", req.Method, "name", requestName(req), "panic", p, "stack", string(debug.Stack()))
	return mcp.Errorf(codeInternal, "internal error")
}

func (s *Server) dispatch(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if req.LogLevel != "" && req.LogLevel.Severity() < 0 {
		return nil, mcp.InvalidParams("unknown log level %q: use one of %v", req.LogLevel, mcpwire.LoggingLevels())
	}
	if err := s.checkScopes(ctx, req); err != nil {
		return nil, err
	}
	switch req.Method {
	case mcp.MethodCallTool:
		return s.callTool(ctx, req)
	case mcp.MethodListTools:
		return s.listTools(ctx, req)
	case mcp.MethodReadResource:
		return s.readResource(ctx, req)
	case mcp.MethodListResources:
		return s.listResources(ctx, req)
	case mcp.MethodListResourceTemplates:
		return s.listResourceTemplates(ctx, req)
	case mcp.MethodGetPrompt:
		return s.getPrompt(ctx, req)
	case mcp.MethodListPrompts:
		return s.listPrompts(ctx, req)
	case mcp.MethodComplete:
		return s.completeArgument(ctx, req)
	case mcp.MethodListen:
		return s.listen(ctx, req)
	case mcp.MethodDiscover:
		return s.serveDiscover(req)
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask:
		if s.servesTasks(req) {
			return s.serveTask(ctx, req)
		}
	case mcpwire.MethodListTasks:
		if s.listsTasks(req) {
			return s.listTasks(ctx, req)
		}
	}
	return s.methods.serveMethod(ctx, s, req)
}

// newResult returns a complete result of this server.
func (s *Server) newResult(value any) *mcp.Result {
	return &mcp.Result{Value: value, ServerInfo: s.info}
}

// serveDiscover serves server/discover.
func (s *Server) serveDiscover(req *mcp.Request) (*mcp.Result, error) {
	result := s.newResult(&mcp.DiscoverResult{
		SupportedVersions: mcp.Revisions(), Capabilities: s.offeredCapabilities(req), Instructions: s.opts.Instructions,
	})
	result.Cache = s.opts.Cache[mcp.MethodDiscover]
	if result.Cache.Scope == "" {
		result.Cache.Scope = mcp.CachePublic
	}
	return result, nil
}

// offeredCapabilities returns the capabilities that the server offers the client now.
func (s *Server) offeredCapabilities(req *mcp.Request) mcp.ServerCapabilities {
	c := mcp.ServerCapabilities{Extensions: mcpwire.Vocabulary(s.opts.Extensions).Declare(), Experimental: s.opts.Experimental}
	if s.offersTasks(req) {
		c.Extensions = s.vocabulary.Declare()
		c.Extensions[mcpwire.ExtensionTasks] = s.taskSettings(req)
	}
	s.declareSkills(&c)
	if s.catalog.offers(KindTool) {
		c.Tools = &mcp.ListCapability{ListChanged: true}
	}
	if s.catalog.offers(KindPrompt) {
		c.Prompts = &mcp.ListCapability{ListChanged: true}
	}
	if s.catalog.offers(KindResource) {
		c.Resources = &mcp.ResourcesCapability{ListChanged: true, Subscribe: true}
	}
	if s.catalog.hasCompleters() {
		c.Completions = &struct{}{}
	}
	if !s.opts.NoLogging {
		c.Logging = &struct{}{}
	}
	return c
}
