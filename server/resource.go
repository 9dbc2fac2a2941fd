package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/options"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/mcp"
)

// ResourceOptions describe a resource or resource template further. The zero value is ready. If a
// function is given several, the last one that sets a field wins.
type ResourceOptions struct {
	Name        string // the default is the URI or the template's text
	Title       string
	MIMEType    string // of the description and the contents; the default follows from the handler's Out
	Size        *int64 // bytes; not for templates
	Icons       []mcp.Icon
	Annotations *mcp.Annotations
	Meta        mcp.Meta
	// Cache replaces the server's caching hint for this resource, unless it is nil.
	Cache *mcp.Cache
	// Complete holds the completion functions by variable of a template. Variables with an enum tag
	// need none.
	Complete map[string]CompleteFunc
}

// Resource adds a resource or resource template. It panics on the mistakes for which [NewResource]
// returns an error.
func Resource[V, Out any](s *Server, uriOrTemplate, description string, fn func(context.Context, V) (Out, error), opts ...ResourceOptions) {
	s.mustAdd(NewResource(uriOrTemplate, description, fn, opts...))
}

// NewResource makes a resource for [Server.Add], or a resource template if the URI has expressions
// (RFC 6570).
//
// V is a struct with a field for each variable of the template, named by the uri tag, or struct{}
// for a fixed URI. A field is a string, number, bool, duration, [encoding.TextUnmarshaler], or for
// lists such as {path*} a slice of these. A variable that is absent leaves its field zero. If the
// variables of a URI do not fit the fields, the template does not match. Variables are decoded and
// come from the client: one may hold "..", a slash or a NUL, so open files through an [os.Root].
//
// If several templates match a URI, the most specific one is read: the template with the most
// literal text, then with fewer variables that span segments, then with fewer variables.
//
// Out is one of
//
//	string                                         text
//	[]byte                                         binary data
//	mcp.Content                                    text, an image, audio or an embedded resource
//	mcp.ResourceContents, []mcp.ResourceContents   these; an empty URI or MIME type is filled in
//	*mcp.ReadResourceResult                        the whole result
//	any other type                                 its JSON as text
//
// An error that wraps [fs.ErrNotExist], or a nil result, means that the resource does not exist.
func NewResource[V, Out any](uriOrTemplate, description string, fn func(context.Context, V) (Out, error), opts ...ResourceOptions) (Item, error) {
	o := options.Merge(opts)
	if o.Name == "" {
		o.Name = uriOrTemplate
	}
	r := &registeredResource{cache: o.Cache, mimeType: o.MIMEType}
	fields, err := readFields(reflect.TypeFor[V](), "uri")
	if err != nil {
		return Item{}, fmt.Errorf("server: resource %q: %w", uriOrTemplate, err)
	}
	r.read = func(c *call, vars uritemplate.Values) (*mcp.ReadResourceResult, error) {
		var v V
		if err := fillVariables(fields, vars, reflect.ValueOf(&v).Elem()); err != nil {
			return nil, errNoMatch
		}
		out, err := fn(c, v)
		if err != nil {
			return nil, err
		}
		return r.newReadResult(any(&out), string(c.params.name))
	}
	var item Item
	if strings.Contains(uriOrTemplate, "{") {
		item, err = r.newTemplateItem(uriOrTemplate, description, fields, o)
	} else {
		item, err = r.newFixedItem(uriOrTemplate, description, fields, o)
	}
	if err != nil {
		return Item{}, fmt.Errorf("server: resource %q: %w", uriOrTemplate, err)
	}
	return item, nil
}

type registeredResource struct {
	cache    *mcp.Cache
	mimeType string
	read     func(c *call, vars uritemplate.Values) (*mcp.ReadResourceResult, error)
}

// registeredTemplate is a resource with variables.
type registeredTemplate struct {
	*registeredResource
	item       Item
	parsed     *uritemplate.Template
	completers completers
}

// errNoMatch reports that the URI's variables do not fit their fields.
var errNoMatch = errors.New("the variables do not fit")

func (r *registeredResource) newFixedItem(uri, description string, fields []field, o ResourceOptions) (Item, error) {
	if len(fields) > 0 || len(o.Complete) > 0 {
		return Item{}, fmt.Errorf("a fixed URI has no variables: use struct{}")
	}
	if err := mcpwire.CheckURI(uri); err != nil {
		return Item{}, err
	}
	described := mcp.Resource{
		URI: uri, Name: o.Name, Title: o.Title, Description: description, MIMEType: o.MIMEType, Size: o.Size, Icons: o.Icons,
		Annotations: o.Annotations, Meta: o.Meta,
	}
	return encodeItem(KindResource, uri, o.Meta, &described, r)
}

func (r *registeredResource) newTemplateItem(text, description string, fields []field, o ResourceOptions) (item Item, err error) {
	t := &registeredTemplate{registeredResource: r}
	if t.parsed, err = uritemplate.Parse(text); err != nil {
		return item, err
	}
	if scheme, _, ok := strings.Cut(text, ":"); !ok || !mcpwire.IsScheme(scheme) {
		return item, fmt.Errorf("not the template of an absolute URI, such as scheme://{name}")
	}
	if o.Size != nil {
		return item, fmt.Errorf("a template has no size")
	}
	if err := checkVariableNames(fields, t.parsed.Names()); err != nil {
		return item, err
	}
	if t.completers, err = completersOf(fields, t.parsed.Names(), o.Complete); err != nil {
		return item, err
	}
	described := mcp.ResourceTemplate{
		URITemplate: text, Name: o.Name, Title: o.Title, Description: description, MIMEType: o.MIMEType, Icons: o.Icons,
		Annotations: o.Annotations, Meta: o.Meta,
	}
	t.item, err = encodeItem(KindResourceTemplate, text, o.Meta, &described, t)
	return t.item, err
}

func checkVariableNames(fields []field, variables []string) error {
	for _, f := range fields {
		if !slices.Contains(variables, f.name) {
			return fmt.Errorf("the template has no variable {%s}", f.name)
		}
	}
	for _, v := range variables {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == v }) {
			return fmt.Errorf("no field is tagged uri:%q", v)
		}
	}
	return nil
}

// fillVariables sets the fields of a struct from the variables of a URI.
func fillVariables(fields []field, vars uritemplate.Values, into reflect.Value) error {
	for i := range fields {
		f := &fields[i]
		v := vars[f.name]
		if !v.Defined() {
			continue
		}
		texts := []string{v.String()}
		if f.list {
			texts = v.Items()
		}
		if err := f.setFromText(into, texts...); err != nil {
			return err
		}
	}
	return nil
}
