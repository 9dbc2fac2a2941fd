package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/mcp"
)

// Server is an MCP server: an [mcp.Handler] that answers for the tools, resources and prompts added to it. One Server
// serves any number of clients of every revision, on any number of transports, at the same time.
type Server struct {
	opts       Options
	info       json.RawMessage // the encoded Implementation
	vocabulary *mcp.Vocabulary
	cursors    *mcp.Sealer
	states     *mcp.Sealer
	instance   [8]byte  // tells cursors of this Server from those of replicas
	callLimiter    *limiter // of calls
	roundLimiter     *limiter // of the further rounds of calls that ask

	catalog       catalog
	methods       extraMethods
	notifications       notificationFuncs
	subscriptions subscriptions

	middlewareMu   sync.Mutex // held while the chain is extended
	middleware []mcp.Middleware
	chain   atomic.Pointer[mcp.Handler] // nil without middleware
}

// New returns a server that offers nothing yet. A nil opts is the zero [Options].
func New(name, version string, opts *Options) *Server {
	var o Options
	if opts != nil {
		o = *opts
	}
	o = o.withDefaults()
	o.Info.Name, o.Info.Version = name, version
	info, err := mcp.Encode(&o.Info)
	if err != nil {
		panic(fmt.Sprintf("server: Options.Info: %v", err))
	}
	s := &Server{
		opts: o, info: info, vocabulary: mcp.NewVocabulary(o.Extensions...),
		cursors: o.Keys.For("cursor"), states: o.Keys.For("state"), callLimiter: newLimiter(o.Limit),
		roundLimiter: newLimiter(o.Limit.widen(roundsPerCall)),
	}
	_, _ = rand.Read(s.instance[:]) // never fails (crypto/rand)
	s.catalog.init(o.Declare)
	s.subscriptions.init(o.ListInterval)
	return s
}

// innermost is the server without middleware.
type innermost struct{ *Server }

func (c innermost) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	return c.dispatch(ctx, req)
}

func (c innermost) NotifyMCP(ctx context.Context, n mcp.Notification) { c.handleNotification(ctx, n) }

// Use wraps the server in middleware, of which the first sees a request first, after those of earlier calls. What
// [mcp.Chain] says of notifications holds.
func (s *Server) Use(mws ...mcp.Middleware) {
	s.middlewareMu.Lock()
	defer s.middlewareMu.Unlock()
	s.middleware = append(s.middleware, mws...)
	h := mcp.Chain(innermost{s}, s.middleware...)
	s.chain.Store(&h)
}

// Keys returns what seals the server's state and cursors: transports that need keys take the same.
func (s *Server) Keys() *mcp.Keys { return s.opts.Keys }

// Vocabulary returns what the server understands: transports that are given no other take this one.
func (s *Server) Vocabulary() *mcp.Vocabulary { return s.vocabulary }

// Close ends all subscriptions with a result, which tells clients that the end is meant, and every one that is opened from
// now on. Other requests are still answered. It does not wait, and always returns nil.
func (s *Server) Close() error {
	s.subscriptions.close()
	return nil
}

// ServeMCP implements [mcp.Handler].
func (s *Server) ServeMCP(ctx context.Context, req *mcp.Request) (res *mcp.Result, err error) {
	if !s.opts.NoRecover {
		defer func() {
			if p := recover(); p != nil {
				res, err = nil, s.panicError(ctx, req, p)
			}
		}()
	}
	if chain := s.chain.Load(); chain != nil {
		res, err = (*chain).ServeMCP(ctx, req)
	} else {
		res, err = s.dispatch(ctx, req)
	}
	if res != nil && res.ServerInfo == nil {
		signed := *res // it may be shared
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
		return nil, mcp.InvalidParams("unknown log level %q: use one of %v", req.LogLevel, mcp.LoggingLevels)
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
		return s.serveDiscover()
	}
	return s.methods.serveMethod(ctx, s, req)
}

// newResult returns a complete result of this server.
func (s *Server) newResult(value any) *mcp.Result {
	return &mcp.Result{Value: value, ServerInfo: s.info}
}
