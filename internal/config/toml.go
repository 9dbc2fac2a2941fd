package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// tomlReader builds a tree from the flat expressions of a TOML file.
type tomlReader struct {
	*document
	parser  unstable.Parser
	root    *node
	table   *node          // the table that receives key = value
	defined map[*node]bool // tables with a header, and complete inline tables
}

// parseTOML parses TOML with the low-level parser, which keeps positions.
func (d *document) parseTOML() *node {
	r := &tomlReader{document: d, root: d.newNode(objectNode, 0, ""), defined: map[*node]bool{}}
	r.table = r.root
	r.parser.Reset(d.text)
	for r.parser.NextExpression() {
		r.readExpression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		r.reportSyntaxError(err)
	}
	if hasErrors(d.problems) && !onlyDuplicates(d.problems) {
		return nil
	}
	return r.root
}

// onlyDuplicates reports whether all problems are repeated keys, which leave the file readable.
func onlyDuplicates(problems []Problem) bool {
	for _, p := range problems {
		if !strings.HasSuffix(p.Message, "occurs twice") {
			return false
		}
	}
	return true
}

func (r *tomlReader) reportSyntaxError(err error) {
	var where *unstable.ParserError
	if !errors.As(err, &where) {
		r.failf(len(r.text), "this is not TOML: %v", err)
		return
	}
	// Highlight is a slice of the text, so its capacity gives its offset.
	offset := cap(r.text) - cap(where.Highlight)
	if strings.HasPrefix(where.Message, "expected keyword") {
		r.failf(offset, "this is not TOML: a value that is a string must be in quotes")
		return
	}
	r.failf(offset, "this is not TOML: %s", codePoint().ReplaceAllString(where.Message, "$1"))
}

// codePoint matches the code points in the parser's messages.
var codePoint = lazyregexp.New(`U\+[0-9A-F]+ ?('.*')?`)

func (r *tomlReader) readExpression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		r.table = r.openTable(r.readKeys(e.Key()))
	case unstable.ArrayTable:
		r.table = r.openArrayElement(r.readKeys(e.Key()))
	case unstable.KeyValue:
		r.readKeyValue(r.table, e)
	}
}

func (r *tomlReader) readKeys(it unstable.Iterator) []*node {
	var keys []*node
	for it.Next() {
		k := it.Node()
		keys = append(keys, r.newNode(stringNode, int(k.Raw.Offset), string(k.Data)))
	}
	return keys
}

// openTable returns the table for the header [a.b].
func (r *tomlReader) openTable(keys []*node) *node {
	parent, last := r.openParent(r.root, keys)
	t := r.getMember(parent, last.text)
	switch {
	case t == nil:
		t = &node{kind: objectNode, start: last.start, at: last.at}
		r.putMember(parent, last, t)
	case !t.is(objectNode) || r.defined[t]:
		t = &node{kind: objectNode, start: last.start, at: last.at}
		r.putMember(parent, last, t) // which reports the duplicate
	}
	r.defined[t] = true
	return t
}

// openArrayElement appends the table for the header [[a.b]].
func (r *tomlReader) openArrayElement(keys []*node) *node {
	parent, last := r.openParent(r.root, keys)
	list := r.getMember(parent, last.text)
	if !list.is(arrayNode) || r.defined[list] {
		list = &node{kind: arrayNode, start: last.start, at: last.at}
		r.putMember(parent, last, list)
	}
	t := &node{kind: objectNode, start: last.start, at: last.at}
	list.items = append(list.items, t)
	return t
}

// openParent follows all keys but the last and creates missing tables.
func (r *tomlReader) openParent(n *node, keys []*node) (parent, last *node) {
	for _, key := range keys[:len(keys)-1] {
		next := r.getMember(n, key.text)
		if next.is(arrayNode) && len(next.items) > 0 {
			next = next.items[len(next.items)-1]
		}
		if !next.is(objectNode) {
			if next != nil {
				r.failf(key.start-r.bomLength, "%s is not a table here: line %d makes it %v", key.text, next.at.Line, next.kind)
			}
			next = &node{kind: objectNode, start: key.start, at: key.at}
			if r.getMember(n, key.text) == nil {
				r.putMember(n, key, next)
			}
		}
		n = next
	}
	return n, keys[len(keys)-1]
}

// readKeyValue puts the value of key = value into table.
func (r *tomlReader) readKeyValue(table *node, e *unstable.Node) {
	keys := r.readKeys(e.Key())
	if len(keys) > maxDepth {
		r.failf(keys[0].start-r.bomLength, "this key has more than %d parts", maxDepth)
		return
	}
	parent, last := r.openParent(table, keys)
	r.putMember(parent, last, r.readValue(e.Value(), last, 0))
}

// readValue converts a value. key supplies the position if the parser gives no position.
func (r *tomlReader) readValue(v *unstable.Node, key *node, depth int) *node {
	n := &node{text: string(v.Data), start: key.start, at: key.at}
	if v.Raw.Length > 0 {
		n = r.newNode(nullNode, int(v.Raw.Offset), string(v.Data))
	}
	if depth > maxDepth {
		r.failf(n.start-r.bomLength, "lists and tables are nested more than %d deep here", maxDepth)
		return n
	}
	n.kind = tomlKind(v.Kind)
	for it := v.Children(); it.Next(); {
		child := it.Node()
		if n.kind == arrayNode {
			n.items = append(n.items, r.readValue(child, n, depth+1))
		} else {
			parent, last := r.openParent(n, r.readKeys(child.Key()))
			r.putMember(parent, last, r.readValue(child.Value(), last, depth+1))
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
