package schema

import (
	"fmt"
	"net/url"
	"strings"
)

// survey walks the subschemas of a document before it is compiled. It finds the resources and the
// targets of references.
type survey struct {
	root    *tree
	order   []*tree
	homes   map[*tree]*resource // of the subschemas that were visited
	named   map[string]*resource
	refs    []reference
	targets map[*tree]*tree // of references, by their values
	dynamic bool            // whether some reference is dynamic
}

// resource is a part of a document with its own names: the document itself, or a subschema with an
// $id.
type resource struct {
	root    *tree
	dialect dialect
	base    *url.URL
	anchors map[string]*tree
	// dynamic are those anchors that a reference looks for on the way to it.
	// $recursiveAnchor has the name "".
	dynamic map[string]*tree
}

// reference is one that is yet to be followed.
type reference struct {
	value *tree
	home  *resource
}

// nowhere is the base of documents without a name.
var nowhere = &url.URL{Scheme: "schema", Path: "/root"}

func newSurvey(root *tree) (*survey, error) {
	d, err := dialectOf(root)
	if err != nil {
		return nil, err
	}
	v := &survey{root: root, homes: make(map[*tree]*resource)}
	home := &resource{root: root, dialect: d, base: nowhere}
	if err := v.addSubschema(root, home); err != nil {
		return nil, err
	}
	for len(v.refs) > 0 { // targets may have further references
		next := v.refs[0]
		v.refs = v.refs[1:]
		if err := v.resolveReference(next); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *survey) addSubschema(t *tree, home *resource) error {
	if v.homes[t] != nil {
		return nil
	}
	home, err := v.resourceOf(t, home)
	if err != nil {
		return err
	}
	v.homes[t] = home
	v.order = append(v.order, t)
	if len(v.order) > maxSubschemas {
		return fmt.Errorf("%w: more than %d subschemas", ErrUnsupported, maxSubschemas)
	}
	alone := home.dialect.refAlone() && t.getMember("$ref") != nil
	for _, m := range t.members {
		if !alone || m.name == "$ref" {
			v.noteKeyword(t, m, home)
		}
		for _, sub := range m.listSubschemas() {
			if err := v.addSubschema(sub, home); err != nil {
				return err
			}
		}
	}
	return nil
}

// resourceOf returns the resource of t: a new one if t has an $id, else home.
func (v *survey) resourceOf(t *tree, home *resource) (*resource, error) {
	d := home.dialect
	if t != v.root && t.getMember("$schema") != nil {
		var err error
		if d, err = dialectOf(t); err != nil {
			return nil, err
		}
	}
	id := t.getMember(d.idKeyword())
	if id == nil || id.kind != '"' || d.refAlone() && t.getMember("$ref") != nil {
		return home, nil
	}
	base, err := home.resolveURI(id.text)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.idKeyword(), quoteText([]byte(id.text)), err)
	}
	fragment := base.Fragment
	if base.Fragment = ""; fragment != "" {
		switch {
		case d >= draft2019:
			return nil, fmt.Errorf("%s must not have a fragment (got %s)", d.idKeyword(), describeValue(id.raw))
		case strings.HasPrefix(id.text, "#"):
			home.addAnchor(&home.anchors, fragment, t)
			return home, nil
		}
	}
	if t != v.root {
		home = &resource{root: t, dialect: d}
	}
	home.base = base
	if fragment != "" {
		home.addAnchor(&home.anchors, fragment, t)
	}
	if v.named == nil {
		v.named = make(map[string]*resource)
	}
	if other := v.named[base.String()]; other != nil {
		return nil, fmt.Errorf("two subschemas have the %s %s", d.idKeyword(), describeValue(id.raw))
	}
	v.named[base.String()] = home
	return home, nil
}

// resolveURI is the URI that a reference in the resource means.
func (r *resource) resolveURI(text string) (*url.URL, error) {
	ref, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if r.base.Opaque != "" && !ref.IsAbs() && !strings.HasPrefix(text, "#") {
		return nil, fmt.Errorf("%w: it is relative to %s, which has no path", ErrUnsupported, r.base)
	}
	return r.base.ResolveReference(ref), nil
}

func (r *resource) addAnchor(in *map[string]*tree, name string, t *tree) {
	if *in == nil {
		*in = make(map[string]*tree)
	}
	(*in)[name] = t
}

// noteKeyword records a keyword that names a subschema or refers to one.
func (v *survey) noteKeyword(t *tree, m member, home *resource) {
	if !home.dialect.knowsKeyword(m.name) {
		return
	}
	text := m.value.kind == '"'
	switch m.name {
	case "$anchor":
		if text {
			home.addAnchor(&home.anchors, m.value.text, t)
		}
	case "$dynamicAnchor":
		if text {
			home.addAnchor(&home.anchors, m.value.text, t)
			home.addAnchor(&home.dynamic, m.value.text, t)
		}
	case "$recursiveAnchor":
		if m.value.kind == 't' && t == home.root {
			home.addAnchor(&home.dynamic, "", t)
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		if text {
			v.refs = append(v.refs, reference{m.value, home})
			v.dynamic = v.dynamic || m.name != "$ref"
		}
	}
}

// resolveReference finds the target of a reference.
func (v *survey) resolveReference(r reference) error {
	home, fragment, err := v.findResource(r)
	if err != nil {
		return err
	}
	target := home.root
	switch {
	case fragment == "":
	case fragment[0] == '/':
		target, home, err = v.followPointer(home, fragment, r.value)
	default:
		if target = home.anchors[fragment]; target == nil {
			err = pointsToNothing(r.value)
		}
	}
	if err != nil {
		return err
	}
	if v.targets == nil {
		v.targets = make(map[*tree]*tree)
	}
	v.targets[r.value] = target
	return v.addSubschema(target, home)
}

// findResource returns the resource that a reference refers to, and its fragment.
func (v *survey) findResource(r reference) (home *resource, fragment string, err error) {
	text := r.value.text
	if text == "" || text[0] == '#' {
		fragment, err = url.PathUnescape(strings.TrimPrefix(text, "#"))
		return r.home, fragment, badReference(text, err)
	}
	to, err := r.home.resolveURI(text)
	if err != nil {
		return nil, "", badReference(text, err)
	}
	fragment, to.Fragment, to.RawFragment = to.Fragment, "", ""
	if home = v.named[to.String()]; home == nil {
		return nil, "", outsideError(text)
	}
	return home, fragment, nil
}

func badReference(text string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("$ref %s: %w", quoteText([]byte(text)), err)
}

// followPointer goes down a JSON pointer, maybe into a resource below.
func (v *survey) followPointer(home *resource, pointer string, ref *tree) (*tree, *resource, error) {
	t := home.root
	for _, name := range strings.Split(pointer[1:], "/") {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		next := t.getMember(name)
		if t.kind == '[' {
			next = t.itemAt(name)
		}
		if next == nil {
			return nil, nil, pointsToNothing(ref)
		}
		if below := v.homes[next]; below != nil {
			home = below
		}
		t = next
	}
	return t, home, nil
}

func pointsToNothing(ref *tree) error {
	return fmt.Errorf("$ref %s points to nothing", quoteText([]byte(ref.text)))
}

// outsideError returns the error of a $ref that leaves the document.
func outsideError(ref string) error {
	return fmt.Errorf("%w: $ref %s leaves the document, and nothing is fetched; put its target under $defs", ErrOutside, quoteText([]byte(ref)))
}
