package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/uritemplate"
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// mentionPattern matches @word and @"words" at the beginning of a word.
var mentionPattern = lazyregexp.New(`(?:^|\s)@(?:"([^"]+)"|(\S+))`)

// Mention is an @word in the user's text: a file, a resource, or neither. One of the fields is set.
type Mention struct{ Quoted, Word string }

// FindMentions returns the mentions in a text.
func FindMentions(text string) (all []Mention) {
	for _, found := range mentionPattern().FindAllStringSubmatch(text, -1) {
		all = append(all, Mention{found[1], found[2]})
	}
	return all
}

// MayBeResource reports whether the mention has the form SERVER:URI.
func (m Mention) MayBeResource() bool {
	server, uri, found := strings.Cut(m.Quoted+m.Word, ":")
	return found && server != "" && uri != ""
}

// Reference is a resource of a server that a mention names. URI is the server's own.
type Reference struct{ Server, URI string }

// String returns SERVER:URI, without control characters.
func (r Reference) String() string { return term.Line(r.Server + ":" + r.URI) }

// referenceTimeout bounds listing the resources for [Runtime.FindReference], which can do without.
const referenceTimeout = 5 * time.Second

// FindReference returns the resource that a mention names. ok is false if the mention does not
// begin with the name of a server and a colon. It is an error if it begins with an unknown name
// before a URL, or names a template without its values.
func (r *Runtime) FindReference(ctx context.Context, m Mention) (ref Reference, ok bool, err error) {
	if !m.MayBeResource() {
		return ref, false, nil
	}
	servers, err := r.Servers(ctx)
	if err != nil {
		return ref, false, err
	}
	word := m.Quoted + m.Word
	for _, s := range servers { // the longest name: one may be the beginning of another
		if rest, ok := strings.CutPrefix(word, s.Name+":"); ok && len(s.Name) > len(ref.Server) {
			ref = Reference{s.Name, rest}
		}
	}
	if ref.Server == "" {
		return ref, false, unknownServer(word, servers)
	}
	listed := r.listOwn(ctx, ref.Server)
	if m.Quoted == "" && !slices.ContainsFunc(listed, func(l agent.Resource) bool { return l.URI == ref.URI }) {
		ref.URI = trimPunctuation(ref.URI)
	}
	for _, l := range listed {
		if l.Template && l.URI == ref.URI && strings.Contains(l.URI, "{") {
			return ref, false, exit.Usagef("@%s is a template: write values in place of %s", ref, strings.Join(templateVariables(l.URI), ", "))
		}
	}
	return ref, ref.URI != "", nil
}

// unknownServer returns the error of a mention with an unknown server, or nil if no URL follows the
// name: people write @name: in texts.
func unknownServer(word string, servers []Server) error {
	name, uri, _ := strings.Cut(word, ":")
	if !strings.Contains(uri, "://") {
		return nil
	}
	var known []string
	for _, s := range servers {
		known = append(known, term.Line(s.Name))
	}
	return exit.Usagef("@%s names a resource, but no server is called %s%s", term.Line(word), term.Line(name), suggest.Hint(name, known))
}

// trimPunctuation removes punctuation behind a URI in a sentence, and closing brackets without an
// opening one.
func trimPunctuation(uri string) string {
	for uri != "" {
		last := uri[len(uri)-1]
		opening := map[byte]string{')': "(", ']': "[", '}': "{"}[last]
		switch {
		case strings.IndexByte(`.,;:!?'"`, last) >= 0:
		case opening != "" && strings.Count(uri, opening) < strings.Count(uri, string(last)):
		default:
			return uri
		}
		uri = uri[:len(uri)-1]
	}
	return uri
}

// templateVariables returns the expressions of a template, such as {id}.
func templateVariables(template string) (all []string) {
	t, err := uritemplate.Parse(template)
	if err != nil {
		return []string{"{…}"}
	}
	for _, name := range t.Names() {
		all = append(all, "{"+name+"}")
	}
	return all
}

// ListResources returns the resources and templates of all servers under the servers' own URIs.
func (r *Runtime) ListResources(ctx context.Context) ([]agent.Resource, error) {
	all, err := r.Toolbox.Resources().ListResources(ctx)
	for i := range all {
		all[i].URI = toolname.OwnURI(all[i])
	}
	return all, err
}

// listOwn returns the resources and templates of a server under its own URIs. It returns nil if
// they do not arrive in time.
func (r *Runtime) listOwn(ctx context.Context, server string) []agent.Resource {
	ctx, cancel := context.WithTimeout(ctx, referenceTimeout)
	defer cancel()
	all, _ := r.ListResources(ctx) // they only help to understand the mention
	return slices.DeleteFunc(all, func(l agent.Resource) bool { return l.Server != server })
}

// ReadReference reads a resource as content for the agent. The error of an unknown URI suggests a
// similar one. It must not be called during a run.
func (r *Runtime) ReadReference(ctx context.Context, ref Reference) ([]mcp.Content, error) {
	content, err := r.Agent.ReadResource(ctx, wirename.ResourceURI(ref.Server, ref.URI))
	var answered *mcp.Error
	switch {
	case err == nil, ctx.Err() != nil:
		return content, err
	case errors.As(err, &answered) && (answered.Code == mcp.CodeResourceNotFound || answered.Code == jsonrpc.CodeInvalidParams):
		return nil, referenceError{fmt.Sprintf("%s has no resource %s: %s%s", term.Line(ref.Server), term.Line(ref.URI),
			cmp.Or(term.Line(answered.Message), "not found"), suggest.Hint(ref.URI, knownURIs(r.listOwn(ctx, ref.Server)))), err}
	case errors.As(err, &answered):
		return nil, referenceError{fmt.Sprintf("@%s cannot be read: %s", ref, term.Line(answered.Message)), err}
	}
	return nil, fmt.Errorf("@%s cannot be read: %w", ref, err)
}

// knownURIs returns URIs and templates to suggest from.
func knownURIs(listed []agent.Resource) (all []string) {
	const longest = 200 // bytes; comparing longer ones takes long
	for _, l := range listed {
		if len(l.URI) <= longest {
			all = append(all, term.Line(l.URI))
		}
	}
	return all
}

// referenceError is the error of a resource that cannot be read, in words for the user.
type referenceError struct {
	text string
	err  error
}

// Error implements [error].
func (e referenceError) Error() string { return e.text }

// Unwrap returns the server's error, which decides the exit code.
func (e referenceError) Unwrap() error { return e.err }
