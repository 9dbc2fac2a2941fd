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

// maxYAML is smaller than the limit of the other formats: the parser's time grows with the square
// of the number of keys.
const maxYAML = 256 << 10

// parseYAML parses the first document of a YAML file.
func (d *document) parseYAML() (root *node) {
	if len(d.text) > maxYAML {
		d.failf(0, "the file has %d KiB: a YAML file of more than %d KiB is not read", len(d.text)>>10, maxYAML>>10)
		return nil
	}
	defer func() { // the parser may panic on malformed files
		if r := recover(); r != nil {
			d.failf(0, "this YAML cannot be read: %v", r)
			root = nil
		}
	}()
	// The lexer counts a CRLF after a comment twice.
	tokens := lexer.Tokenize(string(bytes.ReplaceAll(d.text, []byte("\r\n"), []byte("\n"))))
	if t := tooDeepToken(tokens); t != nil {
		d.failf(d.yamlOffset(t), "lists and objects are nested more than %d deep here", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.yamlError(err)
		return nil
	}
	return d.yamlTree(file)
}

func (d *document) yamlTree(file *ast.File) *node {
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	if len(bodies) == 0 {
		return d.newNode(objectNode, 0, "")
	}
	if len(bodies) > 1 {
		d.problems = append(d.problems, Problem{
			Position: d.positionOf(d.yamlOffset(bodies[1].GetToken())),
			Message:  "only the first document of the file is read",
			Hint:     "remove the line --- before this one",
		})
	}
	r := yamlReader{document: d, anchors: map[string]*node{}}
	root := r.readNode(bodies[0], 0)
	if hasErrors(d.problems) && !onlyDuplicates(d.problems) {
		return nil
	}
	return root
}

func (d *document) yamlOffset(t *token.Token) int {
	if t == nil || t.Position == nil {
		return len(d.text)
	}
	offset := d.offsetOf(t.Position.Line, t.Position.Column)
	for offset < len(d.text) && d.text[offset] == ' ' { // after a tag, the lexer counts the space as part of the value
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

// tooDeepToken returns the token at which the file is nested too deep for a recursive parser, or
// nil. In block style it counts only the nesting within a line: nested lines need indentation,
// which the size of the file limits.
func tooDeepToken(tokens token.Tokens) *token.Token {
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

// yamlReader converts a syntax tree to nodes.
type yamlReader struct {
	*document
	anchors map[string]*node // an alias refers to the same node, so that aliases of aliases take no space
}

func (r *yamlReader) readNode(n ast.Node, depth int) *node {
	if depth > maxDepth {
		r.failf(r.yamlOffset(n.GetToken()), "lists and objects are nested more than %d deep here", maxDepth)
		return r.newScalar(nullNode, n, "")
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return r.readMapping(n, n.Values, depth)
	case *ast.MappingValueNode:
		return r.readMapping(n.Key, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return r.readSequence(n, depth)
	case *ast.AnchorNode:
		value := r.readNode(n.Value, depth+1)
		r.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return r.readAlias(n)
	case *ast.TagNode:
		return r.readTagged(n, depth)
	}
	return r.readLeaf(n)
}

func (r *yamlReader) newScalar(k nodeKind, n ast.Node, text string) *node {
	return r.newNode(k, r.yamlOffset(n.GetToken()), text)
}

func (r *yamlReader) readLeaf(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.StringNode:
		return r.newScalar(stringNode, n, n.Value)
	case *ast.LiteralNode:
		return r.newScalar(stringNode, n, n.Value.Value)
	case *ast.BoolNode:
		return r.newScalar(boolNode, n, fmt.Sprint(n.Value))
	case *ast.IntegerNode, *ast.FloatNode:
		return r.newScalar(numberNode, n, n.GetToken().Value)
	case *ast.InfinityNode:
		return r.newScalar(numberNode, n, fmt.Sprint(n.Value))
	case *ast.NanNode:
		return r.newScalar(numberNode, n, fmt.Sprint(math.NaN()))
	case *ast.NullNode:
		return r.newScalar(nullNode, n, "")
	}
	r.failf(r.yamlOffset(n.GetToken()), "this is not YAML that a configuration can hold: %s", n.Type())
	return r.newScalar(nullNode, n, "")
}

func (r *yamlReader) readSequence(n *ast.SequenceNode, depth int) *node {
	list := r.newScalar(arrayNode, n, "")
	for _, item := range n.Values {
		list.items = append(list.items, r.readNode(item, depth+1))
	}
	return list
}

func (r *yamlReader) readMapping(at ast.Node, values []*ast.MappingValueNode, depth int) *node {
	object := r.newScalar(objectNode, at, "")
	if len(values) > 0 && at.GetToken().Type != token.MappingStartType {
		object = r.newScalar(objectNode, values[0].Key, "")
	}
	var merged []*node
	for _, v := range values {
		value := r.readNode(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			merged = append(merged, value)
			continue
		}
		r.putMember(object, r.readKey(v.Key, depth), value)
	}
	for _, m := range merged {
		r.mergeInto(object, m, 0)
	}
	return object
}

func (r *yamlReader) readKey(k ast.MapKeyNode, depth int) *node {
	var n ast.Node = k
	if explicit, ok := k.(*ast.MappingKeyNode); ok {
		n = explicit.Value
	}
	key := r.readNode(n, depth+1)
	if key.kind == arrayNode || key.kind == objectNode {
		r.failf(key.start-r.bomLength, "a key must be a string, not %v", key.kind)
	}
	if key.kind == nullNode {
		key.text = strings.TrimSpace(n.GetToken().Value)
	}
	return key
}

// mergeInto adds the members of a merge key (<<). Existing members win.
func (r *yamlReader) mergeInto(object, from *node, depth int) {
	switch {
	case from.kind == objectNode:
		for _, m := range from.members {
			if r.findKey(object, m.key.text) < 0 {
				r.putMember(object, m.key, m.value)
			}
		}
	case from.kind == arrayNode && depth == 0:
		for _, item := range from.items {
			r.mergeInto(object, item, depth+1)
		}
	default:
		r.failf(from.start-r.bomLength, "<<: takes an object, or a list of objects, not %v", from.kind)
	}
}

func (r *yamlReader) readAlias(n *ast.AliasNode) *node {
	name := n.Value.GetToken().Value
	if target := r.anchors[name]; target != nil {
		return target
	}
	r.failf(r.yamlOffset(n.GetToken()), "this alias refers to an unknown anchor: &%s", name)
	return r.newScalar(nullNode, n, "")
}

// readTagged applies the tag !!str, which turns other scalars into strings.
func (r *yamlReader) readTagged(n *ast.TagNode, depth int) *node {
	if n.Value == nil {
		return r.newScalar(nullNode, n, "")
	}
	value := r.readNode(n.Value, depth+1)
	if n.Start.Value == "!!str" && (value.kind == boolNode || value.kind == numberNode || value.kind == nullNode) {
		return r.newScalar(stringNode, n.Value, n.Value.GetToken().Value)
	}
	return value
}
