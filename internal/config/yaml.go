package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxYAML bounds YAML more than the other formats, since its parser takes time that grows with the square of the keys.
const maxYAML = 256 << 10

// yaml reads the first document of a YAML file.
func (d *document) yaml() (root *node) {
	if len(d.text) > maxYAML {
		d.failf(0, "the file has %d KiB: a YAML file of more than %d KiB is not read", len(d.text)>>10, maxYAML>>10)
		return nil
	}
	defer func() { // a parser that gives up on a file must not take the program with it
		if r := recover(); r != nil {
			d.failf(0, "this YAML cannot be read: %v", r)
			root = nil
		}
	}()
	// The lexer counts a CRLF behind a comment twice.
	tokens := lexer.Tokenize(string(bytes.ReplaceAll(d.text, []byte("\r\n"), []byte("\n"))))
	if t := nested(tokens); t != nil {
		d.failf(d.yamlOffset(t), "lists and objects are nested more than %d deep here", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.yamlError(err)
		return nil
	}
	return d.fromFile(file)
}

func (d *document) fromFile(file *ast.File) *node {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		return d.node(objectNode, 0, "")
	}
	if len(bodies) > 1 {
		d.problems = append(d.problems, Problem{
			Position: d.position(d.yamlOffset(bodies[1].GetToken())),
			Message:  "only the first document of the file is read",
			Hint:     "remove the line --- before this one",
		})
	}
	r := yamlReader{document: d, anchors: map[string]*node{}}
	root := r.read(bodies[0], 0)
	if fatal(d.problems) && !onlyTwice(d.problems) {
		return nil
	}
	return root
}

func (d *document) yamlOffset(t *token.Token) int {
	if t == nil || t.Position == nil {
		return len(d.text)
	}
	offset := d.offset(t.Position.Line, t.Position.Column)
	for offset < len(d.text) && d.text[offset] == ' ' { // behind a tag the lexer counts the space as the value's
		offset++
	}
	return offset
}

func (d *document) yamlError(err error) {
	var where yaml.Error
	if errors.As(err, &where) {
		d.failf(d.yamlOffset(where.GetToken()), "this is not YAML: %s", where.GetMessage())
		return
	}
	d.failf(len(d.text), "this is not YAML: %v", err)
}

// nested returns the token where the file is nested deeper than a recursive parser should follow. Of block style it counts what
// nests within one line; lines have to be indented, which the size of the file bounds.
func nested(tokens token.Tokens) *token.Token {
	flow, block, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, block = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType, token.TagType, token.AnchorType:
			block++
		}
		if flow > maxDepth || block > maxDepth && flow == 0 {
			return t
		}
	}
	return nil
}

// yamlReader makes a tree of an AST.
type yamlReader struct {
	*document
	anchors map[string]*node // an alias is the node that it names, so that aliases of aliases take no space
}

func (r *yamlReader) read(n ast.Node, depth int) *node {
	if depth > maxDepth {
		r.failf(r.yamlOffset(n.GetToken()), "lists and objects are nested more than %d deep here", maxDepth)
		return r.scalar(nullNode, n, "")
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.mapping(n, n.Values, depth)
	case *ast.MappingValueNode:
		return r.mapping(n.Key, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return r.sequence(n, depth)
	case *ast.AnchorNode:
		value := r.read(n.Value, depth+1)
		r.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return r.alias(n)
	case *ast.TagNode:
		return r.tagged(n, depth)
	}
	return r.leaf(n)
}

func (r *yamlReader) scalar(k nodeKind, n ast.Node, text string) *node {
	return r.node(k, r.yamlOffset(n.GetToken()), text)
}

func (r *yamlReader) leaf(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.StringNode:
		return r.scalar(stringNode, n, n.Value)
	case *ast.LiteralNode:
		return r.scalar(stringNode, n, n.Value.Value)
	case *ast.BoolNode:
		return r.scalar(boolNode, n, fmt.Sprint(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		return r.scalar(numberNode, n, n.GetToken().Value)
	case *ast.InfinityNode:
		return r.scalar(numberNode, n, fmt.Sprint(n.Value))
	case *ast.NanNode:
		return r.scalar(numberNode, n, fmt.Sprint(math.NaN()))
	case *ast.NullNode:
		return r.scalar(nullNode, n, "")
	}
	r.failf(r.yamlOffset(n.GetToken()), "this is not YAML that a configuration can hold: %s", n.Type())
	return r.scalar(nullNode, n, "")
}

func (r *yamlReader) sequence(n *ast.SequenceNode, depth int) *node {
	list := r.scalar(arrayNode, n, "")
	for _, item := range n.Values {
		list.items = append(list.items, r.read(item, depth+1))
	}
	return list
}

func (r *yamlReader) mapping(at ast.Node, values []*ast.MappingValueNode, depth int) *node {
	object := r.scalar(objectNode, at, "")
	if len(values) > 0 && at.GetToken().Type != token.MappingStartType {
		object = r.scalar(objectNode, values[0].Key, "")
	}
	var merged []*node
	for _, v := range values {
		value := r.read(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			merged = append(merged, value)
			continue
		}
		r.put(object, r.key(v.Key, depth), value)
	}
	for _, m := range merged {
		r.merge(object, m, 0)
	}
	return object
}

func (r *yamlReader) key(k ast.MapKeyNode, depth int) *node {
	var n ast.Node = k
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		n = explicit.Value
	}
	key := r.read(n, depth+1)
	if key.kind == arrayNode || key.kind == objectNode {
		r.failf(key.start-r.mark, "a key must be a string, not %v", key.kind)
	}
	if key.kind == nullNode {
		key.text = strings.TrimSpace(n.GetToken().Value)
	}
	return key
}

// merge adds what <<: brings; what the object has already wins.
func (r *yamlReader) merge(object, from *node, depth int) {
	switch {
	case from.kind == objectNode:
		for _, m := range from.members {
			if r.find(object, m.key.text) < 0 {
				r.put(object, m.key, m.value)
			}
		}
	case from.kind == arrayNode && depth == 0:
		for _, item := range from.items {
			r.merge(object, item, depth+1)
		}
	default:
		r.failf(from.start-r.mark, "<<: takes an object, or a list of objects, not %v", from.kind)
	}
}

func (r *yamlReader) alias(n *ast.AliasNode) *node {
	name := n.Value.GetToken().Value
	if target := r.anchors[name]; target != nil {
		return target
	}
	r.failf(r.yamlOffset(n.GetToken()), "there is no anchor &%s before this alias", name)
	return r.scalar(nullNode, n, "")
}

// tagged heeds !!str, which makes a string of what looks like something else.
func (r *yamlReader) tagged(n *ast.TagNode, depth int) *node {
	if n.Value == nil {
		return r.scalar(nullNode, n, "")
	}
	value := r.read(n.Value, depth+1)
	if n.Start.Value == "!!str" && (value.kind == boolNode || value.kind == numberNode || value.kind == nullNode) {
		return r.scalar(stringNode, n.Value, n.Value.GetToken().Value)
	}
	return value
}
