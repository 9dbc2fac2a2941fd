package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// Scopes returns all scopes that a request needs: the scopes from [Options.Scopes] and, for a call
// of a tool or a request about its task, the scopes from the tool's [ToolOptions]. Transports over
// HTTP call it, as [mcp.Handler] describes. A tool that is hidden from the principal adds no
// scopes, so that the answer does not reveal it.
func (s *Server) Scopes(ctx context.Context, p mcp.Principal, method string, params json.RawMessage) []string {
	var all []string
	if s.opts.Scopes != nil {
		all = s.opts.Scopes(ctx, p, method, params)
	}
	if !s.catalog.hasScopes.Load() {
		return all
	}
	return append(all[:len(all):len(all)], s.toolScopes(ctx, p, s.toolParams(ctx, p, method, params))...)
}

// toolScopes returns the scopes of the tool that a call with params needs.
func (s *Server) toolScopes(ctx context.Context, p mcp.Principal, params json.RawMessage) []string {
	name, ok := unescapeString(rawjson.Lookup(params, "name"))
	if !ok {
		return nil
	}
	item, ok := s.findVisible(ctx, p, KindTool, name)
	if !ok {
		return nil
	}
	t := item.entry.(*registeredTool)
	if t.scopesFor == nil {
		return t.scopes
	}
	arguments := json.RawMessage(rawjson.Lookup(params, "arguments"))
	if !rawjson.IsObject(arguments) {
		arguments = noArguments // the call fails later
	}
	return append(t.scopes[:len(t.scopes):len(t.scopes)], t.scopesFor(arguments)...)
}

// toolParams returns the parameters of the tool call that a request makes. For a request about a
// task, these are the parameters of the call that has made the task. It returns nil for other
// requests.
func (s *Server) toolParams(ctx context.Context, p mcp.Principal, method string, params json.RawMessage) json.RawMessage {
	switch method {
	case mcp.MethodCallTool:
		return params
	case mcpwire.MethodGetTask, mcpwire.MethodUpdateTask, mcpwire.MethodCancelTask, mcpwire.MethodTaskResult:
		id, ok := unescapeString(rawjson.Lookup(params, "taskId"))
		if !ok || !s.catalog.hasTasks.Load() {
			return nil
		}
		if r, err := s.loadTask(ctx, p, string(id)); err == nil {
			return r.Params
		}
	}
	return nil
}

// checkScopes returns an error if the token of a request over HTTP lacks scopes. Usually the
// transport has already checked them; it cannot if a middleware hides the method Scopes.
func (s *Server) checkScopes(ctx context.Context, req *mcp.Request) error {
	if req.Header == nil || s.opts.Scopes == nil && !s.catalog.hasScopes.Load() {
		return nil
	}
	needed := s.Scopes(ctx, req.Principal, req.Method, req.Params)
	if req.Principal.HasScopes(needed...) {
		return nil
	}
	return mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s needs a token with the scopes %s", req.Method, strings.Join(needed, " "))
}
