package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// protocolNames holds the methods and notifications of all revisions.
var protocolNames = mcpwire.MethodNames()

// extraMethods holds the methods beyond the protocol's own.
type extraMethods struct {
	mu       sync.RWMutex
	byName   map[string]mcp.Handler
	fallback mcp.Handler
}

// Handle serves a method of an extension or of the program. fn gets the context of a handler, but
// it cannot ask questions. Handle panics if the method belongs to the protocol, in any revision, or
// already has a handler. To change the protocol's own methods, wrap the server in middleware.
func Handle[P, R any](s *Server, method mcp.Method[P, R], fn func(ctx context.Context, params P) (R, error)) {
	HandleRaw(s, method.Name, func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		var p P
		if err := mcp.Decode(req.Params, &p); err != nil {
			return nil, mcp.InvalidParams("%s: %v", method.Name, err)
		}
		r, err := fn(ctx, p)
		if err != nil {
			return nil, err
		}
		return s.newResult(r), nil
	})
}

// HandleRaw is [Handle] for a handler that decodes its parameters itself.
func HandleRaw(s *Server, method string, h mcp.HandlerFunc) {
	if err := s.methods.addMethod(method, h); err != nil {
		panic(err)
	}
}

// Fallback serves all methods that the server does not have: unknown methods, and the protocol's
// own methods for kinds that the server does not offer, such as tools/list before a tool is added
// (see [Options].Declare). h gets the request unchanged. Methods that only the fallback serves are
// not declared; clients call the protocol's own methods only if a middleware adds them to the
// result of server/discover.
func (s *Server) Fallback(h mcp.Handler) {
	s.methods.mu.Lock()
	defer s.methods.mu.Unlock()
	s.methods.fallback = h
}

func (m *extraMethods) addMethod(method string, h mcp.Handler) error {
	if _, taken := protocolNames[method]; taken {
		return fmt.Errorf("server: %s is a method of the protocol", method)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName[method] != nil {
		return fmt.Errorf("server: %s has a handler already", method)
	}
	if m.byName == nil {
		m.byName = map[string]mcp.Handler{}
	}
	m.byName[method] = h
	return nil
}

func (m *extraMethods) serveMethod(ctx context.Context, s *Server, req *mcp.Request) (*mcp.Result, error) {
	m.mu.RLock()
	h, fallback := m.byName[req.Method], m.fallback
	m.mu.RUnlock()
	if h == nil {
		if fallback == nil {
			return nil, mcp.MethodNotFound(req.Method)
		}
		return fallback.ServeMCP(ctx, req)
	}
	c := s.newCall(ctx, req, callParams{})
	defer c.close()
	res, err := h.ServeMCP(c, req)
	if err != nil {
		return nil, c.handlerError(err)
	}
	return res, nil
}
