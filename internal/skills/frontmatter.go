package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Bounds of frontmatter. The time of the parser grows with the square of the length and of the
// depth.
const (
	maxFrontmatter = 16 << 10 // bytes
	maxDepth       = 16
)

var frontmatterRule = lazyregexp.New(`^(?:\x{FEFF})?---\r?\n(?s:(.*?))\r?\n---[ \t]*(?:\r?\n|$)`)

// parseFrontmatter returns the YAML at the beginning of SKILL.md as a JSON object, in the order of
// the file. Scalars follow YAML 1.2. Anchors, aliases and tags are refused.
func parseFrontmatter(text []byte) (object json.RawMessage, err error) {
	found := frontmatterRule().FindSubmatch(text[:min(len(text), maxFrontmatter)])
	switch {
	case found == nil && len(text) > maxFrontmatter:
		return nil, fmt.Errorf("its frontmatter does not end within %d KiB", maxFrontmatter>>10)
	case found == nil:
		return nil, errors.New("it does not begin with frontmatter: YAML between two lines ---")
	}
	defer func() { // the parser may panic on malformed texts
		if p := recover(); p != nil {
			object, err = nil, fmt.Errorf("its frontmatter is not YAML: %v", p)
		}
	}()
	tokens := lexer.Tokenize(string(bytes.ReplaceAll(found[1], []byte("\r\n"), []byte("\n"))))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		message, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("its frontmatter is not YAML: %s", message)
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("its frontmatter has %d YAML documents: want one", len(file.Docs))
	}
	var out []byte
	switch body := file.Docs[0].Body.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		out, err = appendNode(nil, body)
	default:
		err = errors.New("its frontmatter is not a YAML mapping: want name: and description:")
	}
	return out, err
}

// checkTokens refuses nesting that is too deep for a recursive parser, and the parts of YAML with
// which a short text stands for a long one, or for no JSON.
func checkTokens(tokens token.Tokens) error {
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
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			block++
		case token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType:
			return fmt.Errorf("its frontmatter has an anchor, alias, tag or merge key at line %d: write the value itself", t.Position.Line)
		}
		if flow > maxDepth || block > maxDepth && flow == 0 {
			return fmt.Errorf("its frontmatter is nested more than %d deep", maxDepth)
		}
	}
	return nil
}

// appendNode appends a YAML node as JSON.
func appendNode(out []byte, n ast.Node) ([]byte, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return appendMapping(out, n.Values)
	case *ast.MappingValueNode:
		return appendMapping(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out = append(out, '[')
		for i, item := range n.Values {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendNode(out, item); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case *ast.StringNode:
		if n.Token.Type == token.StringType && decimalRule().MatchString(n.Value) { // the parser knows few forms of numbers
			return appendNumber(out, n.Value)
		}
		return appendText(out, n.Value)
	case *ast.LiteralNode:
		return appendText(out, n.Value.Value)
	case *ast.BoolNode:
		return strconv.AppendBool(out, n.Value), nil
	case *ast.NullNode:
		return append(out, "null"...), nil
	case *ast.IntegerNode, *ast.FloatNode:
		return appendNumber(out, n.GetToken().Value)
	case nil:
		return append(out, "null"...), nil
	}
	return nil, fmt.Errorf("its frontmatter has a value at line %d that JSON does not have", n.GetToken().Position.Line)
}

func appendMapping(out []byte, values []*ast.MappingValueNode) ([]byte, error) {
	out = append(out, '{')
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		key := v.Key.GetToken().Value
		if text, ok := v.Key.(*ast.StringNode); ok {
			key = text.Value
		} else if _, isMapping := v.Key.(*ast.MappingKeyNode); isMapping {
			return nil, fmt.Errorf("its frontmatter has a key at line %d that is not a string", v.Key.GetToken().Position.Line)
		}
		var err error
		if out, err = appendText(out, key); err != nil {
			return nil, err
		}
		if out, err = appendNode(append(out, ':'), v.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendText(out []byte, text string) ([]byte, error) {
	raw, err := json.Marshal(text)
	return append(out, raw...), err
}

var (
	decimalRule = lazyregexp.New(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	prefixRule  = lazyregexp.New(`^0(o[0-7]+|x[0-9a-fA-F]+)$`)
)

// appendNumber appends a number of YAML 1.2. Other texts that the parser takes for numbers, such as
// 1_000, are strings in YAML 1.2.
func appendNumber(out []byte, text string) ([]byte, error) {
	switch {
	case prefixRule().MatchString(text):
		n, _ := new(big.Int).SetString(text, 0)
		return n.Append(out, 10), nil
	case !decimalRule().MatchString(text):
		return appendText(out, text)
	}
	if n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 10); ok {
		return n.Append(out, 10), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("its frontmatter has the number %.40s, which is out of range", text)
	}
	return strconv.AppendFloat(out, f, 'g', -1, 64), nil
}

// sameFrontmatter reports whether two JSON objects have the same fields and values.
func sameFrontmatter(a, b json.RawMessage) bool {
	x, errX := decodeNumbers(a)
	y, errY := decodeNumbers(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// decodeNumbers decodes JSON with numbers as fractions, so that 1 equals 1.0.
func decodeNumbers(raw json.RawMessage) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	return normalizeNumbers(value), nil
}

// number is the shortest decimal form of a number.
type number string

func normalizeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = normalizeNumbers(member)
		}
	case []any:
		for i, item := range v {
			v[i] = normalizeNumbers(item)
		}
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return number(n.String())
		}
		f, err := v.Float64()
		if err != nil {
			return v
		}
		return number(strconv.FormatFloat(f, 'f', -1, 64))
	}
	return value
}
