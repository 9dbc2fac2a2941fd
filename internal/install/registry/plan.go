package registry

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Package is a package of a server that needs work before it runs.
type Package struct {
	Type, Identifier, Version string
	// BaseURL is the package registry, or "" for the usual one.
	BaseURL string
	// SHA256 is the digest of the package's file in hexadecimal digits, or "".
	SHA256 string
}

// Way is a way to run a server: an [install.Plan], and the package behind it.
type Way struct {
	install.Plan
	// Package is nil for a server at an address.
	Package *Package
}

// Ways returns the ways to run a server, in the order of its document.
func (e *Entry) Ways() (all []Way) {
	s := &e.Server
	base := install.Plan{Name: path.Base(s.Name), Title: s.Title, About: e.describeEntry()}
	if e.Status != "" && e.Status != "active" {
		base.Warnings = append(base.Warnings, strings.TrimSuffix("the registry calls this version "+e.Status+": "+e.StatusMessage, ": "))
	}
	for _, p := range s.Packages {
		w := Way{Plan: base, Package: &Package{p.Type, p.Identifier, p.Version, p.BaseURL, p.FileSHA256}}
		w.Way = p.Type
		w.planPackage(p)
		all = append(all, w)
	}
	for _, a := range s.Remotes {
		w := Way{Plan: base}
		w.Way = "remote"
		w.planRemote(a)
		all = append(all, w)
	}
	return all
}

// describeEntry returns lines about the source of a server.
func (e *Entry) describeEntry() (lines []string) {
	s := &e.Server
	lines = append(lines, strings.TrimSpace(s.Name+" "+s.Version))
	for _, line := range []string{s.Description, cmp.Or(s.Repository.URL, s.WebsiteURL)} {
		if line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// collector finds the inputs of a document and resolves its values.
type collector struct{ inputs []install.Input }

// addInput adds an input unless one has the name already.
func (c *collector) addInput(name string, in input, repeated bool) {
	for i := range c.inputs {
		if c.inputs[i].Name == name {
			c.inputs[i].Required = c.inputs[i].Required || in.IsRequired
			return
		}
	}
	kind := in.Format
	if kind == "filepath" {
		kind = "file"
	}
	c.inputs = append(c.inputs, install.Input{Name: name, Description: in.Description, Default: in.Default, Example: in.Placeholder,
		Choices: in.Choices, Required: in.IsRequired, Secret: in.IsSecret, Repeated: repeated, Type: kind})
}

// value returns a function for the values of one place of a document. name identifies the input if
// the document has no fixed value there.
func (c *collector) value(name string, in input, repeated bool) func(install.Values) []string {
	if in.Value == "" {
		c.addInput(name, in, repeated)
		return func(v install.Values) []string { return v[name] }
	}
	for _, variable := range slices.Sorted(maps.Keys(in.Variables)) {
		if strings.Contains(in.Value, "{"+variable+"}") {
			c.addInput(variable, in.Variables[variable], false)
		}
	}
	return func(v install.Values) []string { return []string{fillTemplate(in.Value, in.Variables, v)} }
}

var braces = lazyregexp.New(`\{[A-Za-z_][A-Za-z0-9_.-]*\}`)

// fillTemplate replaces the {variables} of a text. Names that are not among the variables stay.
func fillTemplate(text string, variables map[string]input, v install.Values) string {
	var b strings.Builder
	last := 0
	for _, at := range braces().FindAllStringIndex(text, -1) {
		name := text[at[0]+1 : at[1]-1]
		if _, ok := variables[name]; !ok {
			continue
		}
		b.WriteString(install.Escape(text[last:at[0]]))
		b.WriteString(v.Get(name))
		last = at[1]
	}
	b.WriteString(install.Escape(text[last:]))
	return b.String()
}

// arguments returns a function for a list of arguments.
func (c *collector) arguments(all []argument) func(install.Values) []string {
	var parts []func(install.Values) []string
	for i, a := range all {
		name := cmp.Or(strings.TrimLeft(a.Name, "-"), a.ValueHint, fmt.Sprintf("argument%d", i+1))
		if a.Type == "named" && a.Value == "" && a.Default == "" && !a.IsRequired && !a.IsSecret && a.Description == "" && len(a.Choices) == 0 && a.Placeholder == "" && a.Format == "" {
			parts = append(parts, func(install.Values) []string { return []string{install.Escape(a.Name)} }) // a flag without a value
			continue
		}
		values := c.value(name, a.input, a.IsRepeated)
		parts = append(parts, func(v install.Values) (words []string) {
			for _, value := range values(v) {
				if a.Type == "named" {
					words = append(words, install.Escape(a.Name))
				}
				words = append(words, value)
			}
			return words
		})
	}
	return func(v install.Values) (words []string) {
		for _, part := range parts {
			words = append(words, part(v)...)
		}
		return words
	}
}

// table returns a function for environment variables or headers.
func (c *collector) table(all []keyValue) func(install.Values) map[string]string {
	values := map[string]func(install.Values) []string{}
	for _, kv := range all {
		values[kv.Name] = c.value(kv.Name, kv.input, false)
	}
	return func(v install.Values) map[string]string {
		filled := map[string]string{}
		for name, value := range values {
			if all := value(v); len(all) > 0 {
				filled[name] = all[0]
			}
		}
		return filled
	}
}

// planRemote plans the connection to an address.
func (w *Way) planRemote(a address) {
	var c collector
	for _, name := range slices.Sorted(maps.Keys(a.Variables)) {
		if strings.Contains(a.URL, "{"+name+"}") {
			c.addInput(name, a.Variables[name], false)
		}
	}
	headers := c.table(a.Headers)
	kind, ok := map[string]config.Kind{"streamable-http": config.HTTP, "sse": config.SSE}[a.Type]
	if !ok {
		w.Unsupported = fmt.Sprintf("its transport %q is unknown", a.Type)
	} else if u, err := url.Parse(braces().ReplaceAllString(a.URL, "x")); !strings.HasPrefix(a.URL, "{") && (err != nil || install.CheckURL(u) != nil) {
		w.Unsupported = fmt.Sprintf("its address is %q, which is not an https URL", a.URL)
	}
	w.Inputs = c.inputs
	w.Build = func(v install.Values) config.Spec {
		return config.Spec{Kind: kind, URL: fillTemplate(a.URL, a.Variables, v), Headers: headers(v)}
	}
}
