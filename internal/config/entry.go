package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxUnknown is how many keys of an entry are worth a warning each.
const maxUnknown = 50

// entry reads one server of a file.
type entry struct {
	s       *Server
	d       *Dialect
	written string // the type as it is written; empty: there is none
	httpURL bool   // the URL was given as one of Streamable HTTP
	yaml    bool   // a bare number is as good as a string
}

// readEntry makes a server of what stands under its name.
func readEntry(name, n *node, source Source, d *Dialect, inputs []Input) *Server {
	e := &entry{
		s:    &Server{Name: name.text, Source: source, At: name.at, inputs: inputs, places: map[string]Position{}},
		d:    d,
		yaml: strings.HasSuffix(source.Path, ".yaml") || strings.HasSuffix(source.Path, ".yml"),
	}
	e.name()
	if n.kind != objectNode {
		e.errorf(n.at, `write an object such as {"command": "npx", "args": ["-y", "PACKAGE"]}`, "the entry is %v", n.kind)
		return e.s
	}
	for _, m := range n.members {
		e.member(m)
	}
	e.settleKind()
	e.settleTools()
	return e.s
}

func (e *entry) name() {
	switch {
	case e.s.Name == "":
		e.errorf(e.s.At, "name the server", "the server has no name")
	case strings.ContainsFunc(e.s.Name, unicode.IsControl):
		e.errorf(e.s.At, "remove it", "the server's name %q holds a control character", e.s.Name)
	}
}

func (e *entry) member(m member) {
	key := m.key.text
	switch read := fields[key]; {
	case read != nil:
		if m.value.kind != nullNode { // null says as much as nothing
			read(e, key, m.value)
		}
	case slices.Contains(ignored, key) || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "x-"):
	case len(e.s.Unknown) >= maxUnknown:
		e.s.Unknown = append(e.s.Unknown, key)
	default:
		known := slices.Sorted(maps.Keys(fields))
		e.unknown(key, m.key.at, e.meant(key, known), "the key means nothing to dowel")
	}
}

// meant suggests a key, first of those that are often written in another way.
func (e *entry) meant(key string, known []string) string {
	if other := mistaken[strings.ToLower(key)]; other != "" {
		return fmt.Sprintf("did you mean %q?", other)
	}
	return suggest(key, known)
}

func (e *entry) unknown(key string, at Position, hint, why string) {
	e.s.Unknown = append(e.s.Unknown, key)
	e.warnf(at, hint, "unknown key %q: %s", key, why)
}

func (e *entry) problem(p Problem) {
	p.Server = e.s.Name
	e.s.Problems = append(e.s.Problems, p)
}

func (e *entry) errorf(at Position, hint, format string, args ...any) {
	e.problem(Problem{Severity: Error, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *entry) warnf(at Position, hint, format string, args ...any) {
	e.problem(Problem{Severity: Warning, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// failed reports whether what stands there is known to be wrong.
func (e *entry) failed(at Position) bool {
	return slices.ContainsFunc(e.s.Problems, func(p Problem) bool { return p.Severity == Error && p.Position == at })
}

// place remembers where a field stands.
func (e *entry) place(field string, n *node) { e.s.places[field] = n.at }

func (e *entry) has(field string) bool { _, ok := e.s.places[field]; return ok }

// expect reports whether the value is of that kind; it is a problem when not.
func (e *entry) expect(field string, n *node, k nodeKind) bool {
	if n.kind == k {
		return true
	}
	hint := ""
	switch {
	case k == stringNode && (n.kind == numberNode || n.kind == boolNode):
		hint = fmt.Sprintf("write %q", n.text)
	case k == boolNode:
		hint = "write true or false"
	case k == arrayNode && n.kind == stringNode:
		hint = fmt.Sprintf("write [%q]", n.text)
	}
	e.errorf(n.at, hint, "%s must be %v, not %v", field, k, n.kind)
	return false
}

func (e *entry) string(field string, n *node, into *string) {
	e.place(field, n)
	if e.expect(field, n, stringNode) {
		*into = n.text
	}
}

func (e *entry) flag(field string, n *node, into *bool) {
	e.place(field, n)
	if e.expect(field, n, boolNode) {
		*into = n.text == "true"
	}
}

// word is a string; a number or boolean is taken for one where all values are strings anyway, such as in the environment.
func (e *entry) word(field string, n *node) (string, bool) {
	e.place(field, n)
	if n.kind != numberNode && n.kind != boolNode {
		return n.text, e.expect(field, n, stringNode)
	}
	if !e.yaml {
		e.warnf(n.at, fmt.Sprintf("write %q", n.text), "%s is %v and is taken as a string", field, n.kind)
	}
	return n.text, true
}

// strings reads a list. The list is not nil, even if it is empty.
func (e *entry) strings(field string, n *node, into *[]string) {
	e.place(field, n)
	if !e.expect(field, n, arrayNode) {
		return
	}
	if *into == nil {
		*into = []string{}
	}
	for i, item := range n.items {
		if text, ok := e.word(fmt.Sprintf("%s[%d]", field, i), item); ok {
			*into = append(*into, text)
		}
	}
}

func (e *entry) stringMap(field string, n *node, into *map[string]string) {
	e.place(field, n)
	if !e.expect(field, n, objectNode) {
		return
	}
	for _, m := range n.members {
		if text, ok := e.word(field+"."+m.key.text, m.value); ok {
			put(into, m.key.text, text)
		}
	}
}

func put(into *map[string]string, key, value string) {
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
}

// list passes the strings of a list through f.
func list(field string, items []string, f func(field, text string) string) {
	for i, text := range items {
		items[i] = f(fmt.Sprintf("%s[%d]", field, i), text)
	}
}

// table passes the values of a map through f, sorted by their keys.
func table(field string, m map[string]string, f func(field, text string) string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		m[key] = f(field+"."+key, m[key])
	}
}
