package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlReader makes a tree of the flat expressions of a TOML file.
type tomlReader struct {
	*document
	parser  unstable.Parser
	root    *node
	table   *node          // what key = value goes into
	defined map[*node]bool // tables that have a header of their own, or are complete
}

func (d *document) toml() *node {
	r := &tomlReader{document: d, root: d.node(objectNode, 0, ""), defined: map[*node]bool{}}
	r.table = r.root
	r.parser.Reset(d.text)
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		r.syntax(err)
	}
	if fatal(d.problems) && !onlyTwice(d.problems) {
		return nil
	}
	return r.root
}

// onlyTwice reports whether repeated keys are all that is wrong, which leaves the file readable.
func onlyTwice(problems []Problem) bool {
	for _, p := range problems {
		if !strings.HasSuffix(p.Message, "is there twice") {
			return false
		}
	}
	return true
}

func (r *tomlReader) syntax(err error) {
	var where *unstable.ParserError
	if !errors.As(err, &where) {
		r.failf(len(r.text), "this is not TOML: %v", err)
		return
	}
	// Highlight is a part of the text, so what is behind it tells where it is.
	offset := cap(r.text) - cap(where.Highlight)
	if strings.HasPrefix(where.Message, "expected keyword") {
		r.failf(offset, "this is not TOML: a value that is a string must be in quotes")
		return
	}
	r.failf(offset, "this is not TOML: %s", codePoint.ReplaceAllString(where.Message, "$1"))
}

// codePoint is how the parser writes characters.
var codePoint = regexp.MustCompile(`U\+[0-9A-F]+ ?('.*')?`)

func (r *tomlReader) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		r.table = r.header(r.keys(e.Key()))
	case unstable.ArrayTable:
		r.table = r.element(r.keys(e.Key()))
	case unstable.KeyValue:
		r.keyValue(r.table, e)
	}
}

func (r *tomlReader) keys(it unstable.Iterator) []*node {
	var keys []*node
	for it.Next() {
		k := it.Node()
		keys = append(keys, r.node(stringNode, int(k.Raw.Offset), string(k.Data)))
	}
	return keys
}

// header is the table that [a.b] names.
func (r *tomlReader) header(keys []*node) *node {
	parent, last := r.descend(r.root, keys)
	t := r.get(parent, last.text)
	switch {
	case t == nil:
		t = &node{kind: objectNode, start: last.start, at: last.at}
		r.put(parent, last, t)
	case !t.is(objectNode) || r.defined[t]:
		t = &node{kind: objectNode, start: last.start, at: last.at}
		r.put(parent, last, t) // which tells that it is there twice
	}
	r.defined[t] = true
	return t
}

// element is the new table that [[a.b]] appends.
func (r *tomlReader) element(keys []*node) *node {
	parent, last := r.descend(r.root, keys)
	list := r.get(parent, last.text)
	if !list.is(arrayNode) || r.defined[list] {
		list = &node{kind: arrayNode, start: last.start, at: last.at}
		r.put(parent, last, list)
	}
	t := &node{kind: objectNode, start: last.start, at: last.at}
	list.items = append(list.items, t)
	return t
}

// descend follows all keys but the last one, and makes the tables that are not there yet.
func (r *tomlReader) descend(n *node, keys []*node) (parent, last *node) {
	for _, key := range keys[:len(keys)-1] {
		next := r.get(n, key.text)
		if next.is(arrayNode) && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if !next.is(objectNode) {
			if next != nil {
				r.failf(key.start-r.mark, "%s is no table here: line %d gives it %v", key.text, next.at.Line, next.kind)
			}
			next = &node{kind: objectNode, start: key.start, at: key.at}
			if r.get(n, key.text) == nil {
				r.put(n, key, next)
			}
		}
		n = next
	}
	return n, keys[len(keys)-1]
}

func (r *tomlReader) keyValue(table *node, e *unstable.Node) {
	keys := r.keys(e.Key())
	if len(keys) > maxDepth {
		r.failf(keys[0].start-r.mark, "this key has more than %d parts", maxDepth)
		return
	}
	parent, last := r.descend(table, keys)
	r.put(parent, last, r.value(e.Value(), last, 0))
}

// value makes a node of a value; key is where it is when the parser does not tell.
func (r *tomlReader) value(v *unstable.Node, key *node, depth int) *node {
	n := &node{text: string(v.Data), start: key.start, at: key.at}
	if v.Raw.Length > 0 {
		n = r.node(nullNode, int(v.Raw.Offset), string(v.Data))
	}
	if depth > maxDepth {
		r.failf(n.start-r.mark, "lists and tables are nested more than %d deep here", maxDepth)
		return n
	}
	n.kind = tomlKind(v.Kind)
	for it := v.Children(); it.Next(); {
		child := it.Node()
		if n.kind == arrayNode {
			n.items = append(n.items, r.value(child, n, depth+1))
		} else {
			parent, last := r.descend(n, r.keys(child.Key()))
			r.put(parent, last, r.value(child.Value(), last, depth+1))
		}
	}
	r.defined[n] = true
	return n
}

func tomlKind(k unstable.Kind) nodeKind {
	switch k {
	case unstable.String, unstable.LocalDate, unstable.LocalTime, unstable.LocalDateTime, unstable.DateTime:
		return stringNode
	case unstable.Bool:
		return boolNode
	case unstable.Integer, unstable.Float:
		return numberNode
	case unstable.Array:
		return arrayNode
	case unstable.InlineTable:
		return objectNode
	}
	panic(fmt.Sprintf("config: a TOML value of kind %v", k))
}
