package server

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// PromptOptions describe a prompt further. The zero value is ready. If a function is given several,
// the last one that sets a field wins.
type PromptOptions struct {
	Title string
	Icons []mcp.Icon
	Meta  mcp.Meta
	// Arguments describes the arguments if Args is a map.
	Arguments []mcp.PromptArgument
	// Complete holds the completion functions by argument. Arguments with an enum tag need none.
	Complete map[string]CompleteFunc
}

// Prompt adds a prompt with arguments of type Args. It panics on the mistakes for which [NewPrompt]
// returns an error.
func Prompt[Args, Out any](s *Server, name, description string, fn func(context.Context, Args) (Out, error), opts ...PromptOptions) {
	s.mustAdd(NewPrompt(name, description, fn, opts...))
}

// NewPrompt makes a prompt for [Server.Add].
//
// Args is a struct of strings, numbers, bools, durations and [encoding.TextUnmarshaler]s. The json
// tag names a field; the tags title, doc and enum describe it. An argument is required unless its
// field is a pointer or tagged omitempty or omitzero. struct{} means no arguments, and
// map[string]string takes them unchecked.
//
// Out is one of
//
//	string                                     one message of the user
//	mcp.Content                                one message of the user
//	mcp.PromptMessage, []mcp.PromptMessage     these messages
//	*mcp.GetPromptResult                       the whole result
//
// An image or audio needs a MIME type, and an embedded resource a URI; if it has no MIME type, that
// is text/plain or application/octet-stream.
func NewPrompt[Args, Out any](name, description string, fn func(context.Context, Args) (Out, error), opts ...PromptOptions) (Item, error) {
	o := options.Merge(opts)
	p := &registeredPrompt{}
	fail := func(err error) (Item, error) { return Item{}, fmt.Errorf("server: prompt %q: %w", name, err) }
	if name == "" {
		return fail(fmt.Errorf("the name is empty"))
	}
	var out Out
	if !isPromptOutput(any(&out)) {
		return fail(fmt.Errorf("a prompt cannot return %T: use string, mcp.Content, mcp.PromptMessage, []mcp.PromptMessage or *mcp.GetPromptResult", out))
	}
	described := mcp.Prompt{Name: name, Title: o.Title, Description: description, Icons: o.Icons, Meta: o.Meta, Arguments: o.Arguments}
	read, err := p.describeArguments(reflect.TypeFor[Args](), &described)
	if err == nil {
		p.completers, err = completersOf(p.fields, argumentNames(described.Arguments), o.Complete)
	}
	if err == nil {
		p.item, err = encodeItem(KindPrompt, name, o.Meta, &described, p)
	}
	if err != nil {
		return fail(err)
	}
	p.description = description
	p.run = func(c *call) (*mcp.GetPromptResult, error) {
		var args Args
		if err := read(c.params.arguments, reflect.ValueOf(&args).Elem()); err != nil {
			return nil, err
		}
		out, err := fn(c, args)
		if err != nil {
			return nil, err
		}
		return newPromptResult(any(&out), description), nil
	}
	return p.item, nil
}

type registeredPrompt struct {
	item        Item
	description string
	fields      []field
	completers  completers
	run         func(c *call) (*mcp.GetPromptResult, error)
}

// describeArguments adds the arguments to the description. It returns the function that reads them.
func (p *registeredPrompt) describeArguments(t reflect.Type, d *mcp.Prompt) (read func(json.RawMessage, reflect.Value) error, err error) {
	if t == reflect.TypeFor[map[string]string]() {
		return readArgumentMap(d.Arguments), nil
	}
	if d.Arguments != nil {
		return nil, fmt.Errorf("PromptOptions.Arguments describes the arguments of a map, not of %s", t)
	}
	if p.fields, err = readFields(t, "json"); err != nil {
		return nil, err
	}
	for _, f := range p.fields {
		if f.list {
			return nil, fmt.Errorf("%s: an argument is one text, so it cannot be a list", f.name)
		}
		d.Arguments = append(d.Arguments, mcp.PromptArgument{Name: f.name, Title: f.title, Description: f.doc, Required: f.required})
	}
	return p.readArguments, nil
}

func (p *registeredPrompt) readArguments(raw json.RawMessage, into reflect.Value) error {
	for i := range p.fields {
		f := &p.fields[i]
		value := rawjson.Lookup(raw, f.name)
		if value == nil {
			if f.required {
				return mcp.InvalidParams("missing required argument %q", f.name)
			}
			continue
		}
		text, ok := rawjson.String(value)
		if !ok {
			return mcp.InvalidParams("argument %q must be a string", f.name)
		}
		if err := f.setFromText(into, text); err != nil {
			return mcp.InvalidParams("argument %q %v", f.name, err)
		}
	}
	return nil
}

func readArgumentMap(described []mcp.PromptArgument) func(json.RawMessage, reflect.Value) error {
	return func(raw json.RawMessage, into reflect.Value) error {
		args := map[string]string{}
		for it := rawjson.Object(raw); it.Next(); {
			text, ok := rawjson.String(it.Value)
			if !ok {
				return mcp.InvalidParams("argument %q must be a string", it.Key)
			}
			args[string(it.Key)] = text
		}
		for _, a := range described {
			if _, given := args[a.Name]; a.Required && !given {
				return mcp.InvalidParams("missing required argument %q", a.Name)
			}
		}
		into.Set(reflect.ValueOf(args))
		return nil
	}
}

func argumentNames(arguments []mcp.PromptArgument) (names []string) {
	for _, a := range arguments {
		names = append(names, a.Name)
	}
	return names
}

func isPromptOutput(out any) bool {
	switch out.(type) {
	case *string, *mcp.Content, *mcp.PromptMessage, *[]mcp.PromptMessage, **mcp.GetPromptResult:
		return true
	}
	return false
}

// newPromptResult converts a handler's output into a result; out points to it.
func newPromptResult(out any, description string) *mcp.GetPromptResult {
	r := &mcp.GetPromptResult{Description: description}
	switch out := out.(type) {
	case *string:
		r.Messages = []mcp.PromptMessage{{Role: mcp.RoleUser, Content: mcp.Text(*out)}}
	case *mcp.Content:
		r.Messages = []mcp.PromptMessage{{Role: mcp.RoleUser, Content: *out}}
	case *mcp.PromptMessage:
		r.Messages = []mcp.PromptMessage{*out}
	case *[]mcp.PromptMessage:
		r.Messages = *out
	case **mcp.GetPromptResult:
		if *out != nil {
			r = *out
		}
	}
	return r
}

// getPrompt serves prompts/get.
func (s *Server) getPrompt(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	if !s.catalog.offers(KindPrompt) {
		return s.methods.serveMethod(ctx, s, req)
	}
	p, err := readParams(req, "name")
	if err != nil {
		return nil, err
	}
	item, ok := s.findVisible(ctx, req.Principal, KindPrompt, p.name)
	if !ok {
		return nil, mcp.InvalidParams("Unknown prompt: %s", p.name)
	}
	c := s.newCall(ctx, req, p)
	defer c.endCall()
	if err := c.loadState(); err != nil {
		return nil, err
	}
	out, err := item.entry.(*registeredPrompt).run(c)
	asking, err := c.finish(err)
	if asking != nil {
		return asking, nil
	}
	if err == nil {
		out, err = checkPrompt(out)
	}
	if err != nil {
		return nil, c.handlerError(err)
	}
	return s.newResult(out), nil
}
