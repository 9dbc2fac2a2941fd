package server

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// protocolNames holds the methods and notifications of all revisions.
var protocolNames = mcpwire.MethodNames()

// extraMethods holds the methods beyond the protocol's own.
type extraMethods struct {
	mu     sync.RWMutex
	byName map[string]mcp.HandlerFunc
}

// Handle serves a method of an extension or of the program. If R is *mcp.Result, fn returns the
// whole result, else its value. If P is json.RawMessage, fn gets the parameters as they arrived;
// [RequestFrom] has the rest of the request. fn gets the context of a handler, but it cannot ask
// questions. Handle panics if the method belongs to the protocol, in any revision, or already has a
// handler. A server with a handler for skills/list declares the extension of skills (SEP-2640). To
// change the protocol's own methods, or to serve all methods that the server lacks,
// wrap the server in middleware.
func Handle[P, R any](s *Server, method mcp.Method[P, R], fn func(ctx context.Context, params P) (R, error)) {
	err := s.methods.addMethod(method.Name, func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		var p P
		if err := mcp.Decode(req.Params, &p); err != nil {
			return nil, mcp.InvalidParams("%s: %v", method.Name, err)
		}
		r, err := fn(ctx, p)
		if err != nil {
			return nil, err
		}
		if whole, ok := any(r).(*mcp.Result); ok {
			return whole, nil
		}
		res := s.newResult(r)
		res.Cache = s.opts.Cache[method.Name] // zero for a method without caching hints
		return res, nil
	})
	if err != nil {
		panic(err)
	}
}

func (m *extraMethods) addMethod(method string, h mcp.HandlerFunc) error {
	if _, taken := protocolNames[method]; taken {
		return fmt.Errorf("server: %s is a method of the protocol", method)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byName[method] != nil {
		return fmt.Errorf("server: %s has a handler already", method)
	}
	if m.byName == nil {
		m.byName = map[string]mcp.HandlerFunc{}
	}
	m.byName[method] = h
	return nil
}

// serves reports whether a method has a handler.
func (m *extraMethods) serves(method string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byName[method] != nil
}

// declareSkills declares the extension of skills if its methods have handlers, unless the program
// has declared it in [Options].
func (s *Server) declareSkills(c *mcp.ServerCapabilities) {
	if mcpwire.OffersSkills(*c) || !s.methods.serves(mcpwire.MethodListSkills) {
		return
	}
	if c.Extensions == nil {
		c.Extensions = map[string]json.RawMessage{}
	}
	c.Extensions[mcpwire.ExtensionSkills] = json.RawMessage("{}")
	if s.methods.serves(mcpwire.MethodReadDirectory) {
		c.Extensions[mcpwire.ExtensionSkills] = json.RawMessage(`{"directoryRead":true}`)
	}
}

func (m *extraMethods) serveMethod(ctx context.Context, s *Server, req *mcp.Request) (*mcp.Result, error) {
	m.mu.RLock()
	h := m.byName[req.Method]
	m.mu.RUnlock()
	if h == nil {
		return nil, mcp.MethodNotFound(req.Method)
	}
	c := s.newCall(ctx, req, callParams{})
	defer c.endCall()
	res, err := h(c, req)
	if err != nil {
		return nil, c.handlerError(err)
	}
	return res, nil
}
