package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// ToolOptions describe a tool further. The zero value is ready. If a function is given several, the
// last one that sets a field wins.
type ToolOptions struct {
	Title       string
	Icons       []mcp.Icon
	Annotations *mcp.ToolAnnotations
	Meta        mcp.Meta
	// InputSchema replaces the schema that is inferred from In. In must be able to hold each value
	// that it accepts.
	InputSchema json.RawMessage
	// OutputSchema replaces the schema that is inferred from Out.
	OutputSchema json.RawMessage
	// Scopes are the permissions that a caller over HTTP needs for the tool. The transport refuses
	// a call without them, and the refusal tells the client which scopes to ask for (package
	// auth/resource). On standard streams the user is the owner of the process, and scopes do not
	// count.
	Scopes []string
	// ScopesFor returns further scopes for the arguments of one call, an object that was not yet
	// validated. It is called concurrently and must be quick.
	ScopesFor func(arguments json.RawMessage) []string
	// Task makes tasks of calls that take long. The zero value makes none.
	Task TaskOptions
}

// Tool adds a tool that takes arguments of type In and returns a result of type Out. It panics on
// the mistakes for which [NewTool] returns an error.
func Tool[In, Out any](s *Server, name, description string, fn func(context.Context, In) (Out, error), opts ...ToolOptions) {
	s.mustAdd(NewTool(name, description, fn, opts...))
}

// NewTool makes a tool for [Server.Add].
//
// In is a struct or a map; package schema documents its tags. The server validates the arguments
// against the schema of In before it calls fn, and reports a mismatch as a tool error to the model.
// An optional field that is absent gets the default of its tag.
//
// Out is one of
//
//	string                      text
//	mcp.Content, []mcp.Content  that content
//	*mcp.CallToolResult         the whole result
//	struct{}                    nothing
//	any                         one of these, or JSON without a schema
//	any other type              structured content with its schema, and the same JSON as text
//
// The server validates structured content against the output schema. On a mismatch it logs the
// details, and the caller gets a tool error. A nil *T is a mismatch too: the schema of *T is the
// schema of T, without null, because older revisions allow objects only. Return an error, or a
// struct that says that a value is missing.
//
// A name has 1 to 128 characters of A-Z, a-z, 0-9, '_', '-' and '.'.
func NewTool[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...ToolOptions) (Item, error) {
	o := options.Merge(opts)
	t, err := newTypedTool[In, Out](name, description, o)
	if err != nil {
		return Item{}, fmt.Errorf("server: tool %q: %w", name, err)
	}
	if o.InputSchema == nil {
		t.defaults = collectDefaults(t.input)
	}
	empty := reflect.TypeFor[In]() == reflect.TypeFor[struct{}]()
	t.run = func(c *call, r *toolResult) error {
		var in In
		if !empty {
			if err := t.decodeArguments(c.params.arguments, &in); err != nil {
				return err
			}
		}
		out, err := fn(c, in)
		if err != nil {
			return err
		}
		if text, ok := any(&out).(*string); ok {
			r.setText(*text)
			return nil
		}
		kept := out
		return r.setOutput(&kept)
	}
	return t.item, nil
}

// RawTool adds a tool with a complete description. It panics on the mistakes for which [NewRawTool]
// returns an error.
func RawTool(s *Server, described mcp.Tool, fn func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)) {
	s.mustAdd(NewRawTool(described, fn))
}

// NewRawTool makes a tool for [Server.Add] from a complete description. fn gets the arguments as
// JSON: an object that matches the input schema. fn must neither change the arguments nor use them
// after it returns.
func NewRawTool(described mcp.Tool, fn func(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error)) (Item, error) {
	t, err := newRawTool(described)
	if err != nil {
		return Item{}, fmt.Errorf("server: tool %q: %w", described.Name, err)
	}
	t.run = func(c *call, r *toolResult) error {
		out, err := fn(c, c.params.arguments)
		if err == nil {
			err = r.setOutput(&out)
		}
		return err
	}
	return t.item, nil
}

type registeredTool struct {
	item     Item
	input    *schema.Schema
	output   *schema.Schema // nil if none is declared
	headers  mcpwire.ToolHeaders
	defaults json.RawMessage // an object of the optional arguments' defaults; nil without any
	run      func(c *call, r *toolResult) error

	scopes    []string
	scopesFor func(arguments json.RawMessage) []string // nil if they do not depend on the arguments
	task      TaskOptions
	annotated *mcp.ToolAnnotations
}

// newTypedTool makes a tool from the types and the options. It compiles the schema of a type once.
func newTypedTool[In, Out any](name, description string, o ToolOptions) (t *registeredTool, err error) {
	described := mcp.Tool{Name: name, Description: description, Title: o.Title, Icons: o.Icons, Annotations: o.Annotations, Meta: o.Meta}
	t = &registeredTool{scopes: slices.Clone(o.Scopes), scopesFor: o.ScopesFor}
	if t.task, err = o.Task.withDefaults(); err != nil {
		return nil, err
	}
	if o.InputSchema != nil {
		t.input, err = schema.Compile(o.InputSchema)
	} else {
		t.input, err = schema.For[In]()
	}
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	switch {
	case o.OutputSchema != nil:
		t.output, err = schema.Compile(o.OutputSchema)
	case hasStructuredOutput(reflect.TypeFor[Out]()):
		t.output, err = schema.ForOutput[Out]()
	}
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return t, t.checkDescription(described)
}

func newRawTool(described mcp.Tool) (t *registeredTool, err error) {
	t = &registeredTool{}
	if t.input, err = schema.Compile(described.InputSchema); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	if described.OutputSchema != nil {
		if t.output, err = schema.Compile(described.OutputSchema); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
	}
	return t, t.checkDescription(described)
}

// checkDescription checks the tool's description and completes it with the schemas.
func (t *registeredTool) checkDescription(described mcp.Tool) error {
	t.annotated = described.Annotations
	if !validToolName(described.Name) {
		return fmt.Errorf("a name has 1 to 128 characters of A-Z, a-z, 0-9, '_', '-' and '.'")
	}
	if t.input.Type() != "object" {
		return fmt.Errorf("input: the schema must have type object (got %.80s)", t.input.JSON())
	}
	var err error
	if t.headers, err = mcpwire.ReadToolHeaders(t.input.JSON()); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	described.InputSchema = t.input.JSON()
	if t.output != nil {
		described.OutputSchema = t.output.JSON()
	}
	t.item, err = encodeItem(KindTool, described.Name, described.Meta, &described, t)
	return err
}

func validToolName(name string) bool {
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return len(name) >= 1 && len(name) <= 128
}

// collectDefaults returns an object of the defaults of optional properties, or nil without any.
func collectDefaults(s *schema.Schema) json.RawMessage {
	var all map[string]json.RawMessage
	for _, p := range s.Properties() {
		if !p.Required && p.Default != nil {
			if all == nil {
				all = map[string]json.RawMessage{}
			}
			all[p.Name] = p.Default
		}
	}
	if all == nil {
		return nil
	}
	raw, _ := mcp.Encode(all) // cannot fail: the values come from a parsed schema
	return raw
}

// decodeArguments decodes arguments that have passed validation.
func (t *registeredTool) decodeArguments(arguments json.RawMessage, in any) error {
	if t.defaults != nil {
		if err := schema.Decode(t.defaults, in); err != nil {
			return invalidArguments(err)
		}
	}
	if err := schema.Decode(arguments, in); err != nil {
		return invalidArguments(err)
	}
	return nil
}

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if !s.catalog.offers(KindTool) {
		return s.methods.serveMethod(ctx, s, req)
	}
	p, err := readParams(req, "name")
	if err != nil {
		return nil, err
	}
	item, ok := s.findVisible(ctx, req.Principal, KindTool, p.name)
	if !ok {
		return nil, mcp.InvalidParams("Unknown tool: %s", p.name)
	}
	t := item.entry.(*registeredTool)
	if s.catalog.hasTasks.Load() {
		if possible, err := checkTaskUse(req, t); err != nil {
			return nil, err
		} else if possible {
			return s.callToolAsTask(ctx, req, t)
		}
	}
	c := s.newCall(ctx, req, p)
	defer c.endCall()
	if refused, err := s.checkToolCall(c, t); refused != nil || err != nil {
		return refused, err
	}
	return s.runTool(c, t)
}

// checkToolCall reads the call's state, and checks its limits and arguments. It returns the result
// or the error that refuses the call.
func (s *Server) checkToolCall(c *call, t *registeredTool) (refused *mcp.Result, err error) {
	if err := c.loadState(); err != nil {
		return nil, err
	}
	if err := s.checkLimit(c); err != nil {
		return s.toolError(err.Error()), nil
	}
	if t.headers != nil {
		if err := t.headers.CheckRequest(c.req, c.params.arguments); err != nil {
			return nil, err
		}
	}
	if err := t.input.Validate(c.params.arguments); err != nil {
		return s.toolError(invalidArguments(err).Error()), nil
	}
	return nil, nil
}

func (s *Server) runTool(c *call, t *registeredTool) (*mcp.Result, error) {
	r := newToolResult(s)
	err := t.run(c, r)
	asking, err := c.finish(err)
	switch {
	case asking != nil:
		return asking, nil
	case err == nil:
		err = r.checkOutput(t)
	}
	if err == nil {
		return &r.Result, nil
	}
	return s.toolFailed(c, err)
}

// toolFailed converts the error of a tool's handler into the result or error for the client.
func (s *Server) toolFailed(c *call, err error) (*mcp.Result, error) {
	if passing := passThroughError(c.Context, err); passing != nil {
		return nil, passing
	}
	if errors.Is(err, errInvalidOutput) {
		s.opts.Logger.ErrorContext(c.Context, "a tool's output was invalid", "tool", string(c.params.name), "err", err)
		return s.toolError(errInvalidOutput.Error()), nil
	}
	if s.opts.RedactErrors {
		s.opts.Logger.WarnContext(c.Context, "a tool failed", "tool", string(c.params.name), "err", err)
		return s.toolError("the tool failed"), nil
	}
	return s.toolError(err.Error()), nil
}

// invalidArguments returns an error that a model can correct.
func invalidArguments(err error) error { return fmt.Errorf("invalid arguments: %w", err) }
