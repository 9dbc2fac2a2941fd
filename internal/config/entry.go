package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxUnknown limits the warnings about unknown keys of an entry.
const maxUnknown = 50

// entryReader reads one server entry.
type entryReader struct {
	s        *Server
	d        *Dialect
	typeText string // the type as written; empty without one
	httpURL  bool   // the URL was set by httpUrl
	yaml     bool   // the file is YAML, where bare numbers are usual strings
}

// readEntry reads the server entry n.
func readEntry(name, n *node, source Source, d *Dialect, inputs []Input) *Server {
	e := &entryReader{
		s:    &Server{Name: name.text, Source: source, At: name.at, inputs: inputs, positions: map[string]Position{}},
		d:    d,
		yaml: strings.HasSuffix(source.Path, ".yaml") || strings.HasSuffix(source.Path, ".yml"),
	}
	e.checkName()
	if n.kind != objectNode {
		e.errorf(n.at, `write an object such as {"command": "npx", "args": ["-y", "PACKAGE"]}`, "the entry is %v", n.kind)
		return e.s
	}
	for _, m := range n.members {
		e.readMember(m)
	}
	e.translateVariables()
	e.resolveKind()
	e.checkToolNames()
	return e.s
}

// checkName reports an unusable server name.
func (e *entryReader) checkName() {
	switch {
	case e.s.Name == "":
		e.errorf(e.s.At, "name the server", "the server has no name")
	case strings.ContainsFunc(e.s.Name, unicode.IsControl):
		e.errorf(e.s.At, "remove it", "the server's name %q holds a control character", e.s.Name)
	}
}

// readMember reads one member of the entry.
func (e *entryReader) readMember(m member) {
	key := m.key.text
	switch read := fieldReaders[key]; {
	case read != nil:
		if m.value.kind != nullNode { // null counts as missing
			read(e, key, m.value)
		}
	case slices.Contains(ignoredKeys, key) || strings.HasPrefix(key, "$") || strings.HasPrefix(key, "x-"):
	case len(e.s.Unknown) >= maxUnknown:
		e.s.Unknown = append(e.s.Unknown, key)
	default:
		known := slices.Sorted(maps.Keys(fieldReaders))
		e.addUnknown(key, m.key.at, e.suggestKey(key, known), "dowel does not know this key")
	}
}

// suggestKey returns a hint for an unknown key. Common mistakes come before similar names.
func (e *entryReader) suggestKey(key string, known []string) string {
	if other := commonMistakes[strings.ToLower(key)]; other != "" {
		return fmt.Sprintf("did you mean %q?", other)
	}
	return suggestName(key, known)
}

func (e *entryReader) addUnknown(key string, at Position, hint, why string) {
	e.s.Unknown = append(e.s.Unknown, key)
	e.warnf(at, hint, "unknown key %q: %s", key, why)
}

func (e *entryReader) addProblem(p Problem) {
	p.Server = e.s.Name
	e.s.Problems = append(e.s.Problems, p)
}

func (e *entryReader) errorf(at Position, hint, format string, args ...any) {
	e.addProblem(Problem{Severity: Error, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

func (e *entryReader) warnf(at Position, hint, format string, args ...any) {
	e.addProblem(Problem{Severity: Warning, Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// hasError reports whether an error was recorded at this position.
func (e *entryReader) hasError(at Position) bool {
	return slices.ContainsFunc(e.s.Problems, func(p Problem) bool { return p.Severity == Error && p.Position == at })
}

// recordPosition records where a field is written.
func (e *entryReader) recordPosition(field string, n *node) { e.s.positions[field] = n.at }

func (e *entryReader) hasField(field string) bool { _, ok := e.s.positions[field]; return ok }

// expectKind reports whether n has kind k, and records an error if not.
func (e *entryReader) expectKind(field string, n *node, k nodeKind) bool {
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

func (e *entryReader) readString(field string, n *node, into *string) {
	e.recordPosition(field, n)
	if e.expectKind(field, n, stringNode) {
		*into = n.text
	}
}

func (e *entryReader) readBool(field string, n *node, into *bool) {
	e.recordPosition(field, n)
	if e.expectKind(field, n, boolNode) {
		*into = n.text == "true"
	}
}

// readWord reads a string. It accepts a number or boolean with a warning, for places where all
// values are strings, such as the environment.
func (e *entryReader) readWord(field string, n *node) (string, bool) {
	e.recordPosition(field, n)
	if n.kind != numberNode && n.kind != boolNode {
		return n.text, e.expectKind(field, n, stringNode)
	}
	if !e.yaml {
		e.warnf(n.at, fmt.Sprintf("write %q", n.text), "%s is %v and is used as a string", field, n.kind)
	}
	return n.text, true
}

// readStrings reads a list. The result is not nil, even for an empty list.
func (e *entryReader) readStrings(field string, n *node, into *[]string) {
	e.recordPosition(field, n)
	if !e.expectKind(field, n, arrayNode) {
		return
	}
	if *into == nil {
		*into = []string{}
	}
	for i, item := range n.items {
		if text, ok := e.readWord(fmt.Sprintf("%s[%d]", field, i), item); ok {
			*into = append(*into, text)
		}
	}
}

// readStringMap adds the members of an object to a map.
func (e *entryReader) readStringMap(field string, n *node, into *map[string]string) {
	e.recordPosition(field, n)
	if !e.expectKind(field, n, objectNode) {
		return
	}
	for _, m := range n.members {
		if text, ok := e.readWord(field+"."+m.key.text, m.value); ok {
			setKey(into, m.key.text, text)
		}
	}
}

func setKey(into *map[string]string, key, value string) {
	if *into == nil {
		*into = map[string]string{}
	}
	(*into)[key] = value
}

// mapList replaces each string of a list by the result of f.
func mapList(field string, items []string, f func(field, text string) string) {
	for i, text := range items {
		items[i] = f(fmt.Sprintf("%s[%d]", field, i), text)
	}
}

// mapTable replaces each value of a map by the result of f, in the order of the keys.
func mapTable(field string, m map[string]string, f func(field, text string) string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		m[key] = f(field+"."+key, m[key])
	}
}
