package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

// maxCompletions is how many values a result may hold (server/utilities/completion).
const maxCompletions = 100

// CompleteFunc suggests values for an argument of a prompt or a variable of a template, best first.
// value is the text typed so far; settled holds the arguments that already have values. It may
// return any number: the client gets the first 100 and the total.
type CompleteFunc func(ctx context.Context, value string, settled map[string]string) ([]string, error)

// CompleteFrom returns a CompleteFunc that ignores case and suggests the values that begin with the
// typed text, then the values that contain it.
func CompleteFrom(values ...string) CompleteFunc {
	return func(_ context.Context, value string, _ map[string]string) ([]string, error) {
		typed := strings.ToLower(value)
		var begins, contains []string
		for _, v := range values {
			if lower := strings.ToLower(v); strings.HasPrefix(lower, typed) {
				begins = append(begins, v)
			} else if strings.Contains(lower, typed) {
				contains = append(contains, v)
			}
		}
		return append(begins, contains...), nil
	}
}

// completers maps each known argument to its completion function; nil if it has none.
type completers map[string]CompleteFunc

func completersOf(fields []field, names []string, given map[string]CompleteFunc) (completers, error) {
	all := completers{}
	for _, name := range names {
		all[name] = nil
	}
	for _, f := range fields {
		if f.enum != nil {
			all[f.name] = CompleteFrom(f.enum...)
		}
	}
	for name, fn := range given {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("Complete: unknown argument %q", name)
		}
		all[name] = fn
	}
	return all, nil
}

func (c completers) hasAny() bool {
	for _, fn := range c {
		if fn != nil {
			return true
		}
	}
	return false
}

// completeArgument serves completion/complete. Until an item with completions is added, the method
// is neither declared nor found.
func (s *Server) completeArgument(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if !s.catalog.hasCompleters() {
		return s.methods.serveMethod(ctx, s, req)
	}
	var p mcp.CompleteParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("completion/complete: %v", err)
	}
	all, err := s.completersOf(ctx, req, p.Ref)
	if err != nil {
		return nil, err
	}
	fn, known := all[p.Argument.Name]
	if !known {
		return nil, mcp.InvalidParams("%s has no argument %q", p.Ref.Name+p.Ref.URI, p.Argument.Name)
	}
	if err := s.callLimiter.takeToken(req.Principal); err != nil {
		return nil, mcp.Errorf(codeInternal, "%v", err)
	}
	if fn == nil {
		return s.completionResult(nil), nil
	}
	var settled map[string]string
	if p.Context != nil {
		settled = p.Context.Arguments
	}
	c := s.newCall(ctx, req, callParams{name: []byte(p.Ref.Name + p.Ref.URI)})
	defer c.endCall()
	values, err := fn(c, p.Argument.Value, settled)
	if err != nil {
		return nil, c.handlerError(err)
	}
	return s.completionResult(values), nil
}

func (s *Server) completionResult(values []string) *mcp.Result {
	total := len(values)
	if total > maxCompletions {
		values = values[:maxCompletions]
	}
	return s.newResult(&mcp.CompleteResult{Completion: mcp.Completion{Values: values, Total: total, HasMore: total > len(values)}})
}

// completersOf returns the completers of the prompt or template that ref names. A resource has
// none.
func (s *Server) completersOf(ctx context.Context, req *mcp.Request, ref mcp.CompletionRef) (completers, error) {
	switch ref.Type {
	case mcpwire.RefPrompt:
		if item, ok := s.findVisible(ctx, req.Principal, KindPrompt, []byte(ref.Name)); ok {
			return item.entry.(*registeredPrompt).completers, nil
		}
		return nil, mcp.InvalidParams("Unknown prompt: %s", ref.Name)
	case mcpwire.RefResource:
		if item, ok := s.findVisible(ctx, req.Principal, KindResourceTemplate, []byte(ref.URI)); ok {
			return item.entry.(*registeredTemplate).completers, nil
		}
		if _, ok := s.findVisible(ctx, req.Principal, KindResource, []byte(ref.URI)); ok {
			return nil, nil
		}
		return nil, mcp.ResourceNotFound(ref.URI)
	}
	return nil, mcp.InvalidParams("ref.type must be %s or %s (got %q)", mcpwire.RefPrompt, mcpwire.RefResource, ref.Type)
}

// hasCompleters reports whether an item with completions was added.
func (c *catalog) hasCompleters() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.canComplete
}
