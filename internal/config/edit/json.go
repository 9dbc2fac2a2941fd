package edit

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"
)

type jsonSyntax struct{}

// jsonComment skips // and /* */ comments.
func jsonComment(text []byte, pos int) int {
	if pos+1 >= len(text) || text[pos] != '/' {
		return pos
	}
	switch text[pos+1] {
	case '/':
		return lineEnd(text, pos)
	case '*':
		if i := bytes.Index(text[pos+2:], []byte("*/")); i >= 0 {
			return pos + i + 4
		}
	}
	return pos
}

func (jsonSyntax) parseText(text []byte) (any, error) {
	root, err := jsonTree(text)
	if root == nil || err != nil {
		return nil, err
	}
	return jsonModel(*root)
}

// jsonTree parses text. It returns nil if the text holds only comments.
func jsonTree(text []byte) (*hujson.Value, error) {
	d := newDocument(text, jsonComment)
	if d.skipSpace(0) == len(text) {
		return nil, nil
	}
	// hujson rejects a // comment that ends with the file, so a line break is added.
	v, err := hujson.Parse(append(text[:len(text):len(text)], '\n'))
	return &v, ExplainJSON(err)
}

func jsonModel(v hujson.Value) (any, error) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		o := Object{}
		for _, m := range v.Members {
			value, err := jsonModel(m.Value)
			if err != nil {
				return nil, err
			}
			o = append(o, Member{m.Name.Value.(hujson.Literal).String(), value})
		}
		return o, nil
	case *hujson.Array:
		l := []any{}
		for _, e := range v.Elements {
			value, err := jsonModel(e)
			if err != nil {
				return nil, err
			}
			l = append(l, value)
		}
		return l, nil
	case hujson.Literal:
		return jsonScalar(v)
	}
	return nil, ErrUnsafe
}

func jsonScalar(l hujson.Literal) (any, error) {
	switch l.Kind() {
	case '"':
		return l.String(), nil
	case '0':
		v, err := parseNumber(string(l))
		if err != nil { // beyond the range of a float64
			return Literal(l), nil
		}
		return v, nil
	case 't', 'f':
		return l.Bool(), nil
	}
	return nil, nil
}

func jsonNode(v hujson.Value) *node {
	n := &node{start: v.StartOffset, end: v.EndOffset, open: v.StartOffset + 1, close: v.EndOffset - 1}
	switch v := v.Value.(type) {
	case *hujson.Object:
		n.kind = object
		for _, m := range v.Members {
			key := m.Name.Value.(hujson.Literal).String()
			n.items = append(n.items, item{key, m.Name.StartOffset, m.Value.EndOffset, m.Value.StartOffset - len(m.Value.BeforeExtra), jsonNode(m.Value)})
		}
	case *hujson.Array:
		n.kind = list
		for _, e := range v.Elements {
			n.items = append(n.items, item{"", e.StartOffset, e.EndOffset, e.StartOffset, jsonNode(e)})
		}
	}
	return n
}

// jsonText is a JSON file and its style.
type jsonText struct {
	flow
	root     *node
	colon    string
	compact  bool   // the whole file is one line
	pad      string // the space inside the braces of an object on one line
	oneLists bool   // lists of scalars are written on one line
}

func readJSON(text []byte) (*jsonText, error) {
	t := &jsonText{flow: flow{document: newDocument(text, jsonComment), indentUnit: "  "}, colon: ": ", oneLists: true}
	v, err := jsonTree(text)
	if err != nil || v == nil {
		return t, err
	}
	t.root = jsonNode(*v)
	t.compact = len(t.root.items) > 0 && !t.hasBreak(t.root.start, t.root.end)
	t.detectStyle()
	return t, nil
}

// detectStyle detects how the file is formatted. The first example of each kind decides.
func (t *jsonText) detectStyle() {
	var unit, pad, lists, colon, comma bool
	t.root.eachNode(func(n *node) {
		if len(n.items) == 0 {
			return
		}
		first, broken := n.items[0], t.hasBreak(n.open, n.close)
		if broken && t.isFirstOnLine(first.start) {
			outer, inner := t.indentAt(n.start), t.indentAt(first.start)
			if rest, ok := strings.CutPrefix(inner, outer); ok && rest != "" && !unit {
				t.indentUnit, unit = rest, true
			}
			t.trailingComma = t.trailingComma || t.commaAfter(n.items[len(n.items)-1].end) >= 0
		}
		if n.kind == object && !broken && !pad {
			t.pad, pad = string(t.text[n.open:first.start]), true
		}
		if n.kind == list && !lists && allScalars(n) {
			t.oneLists, lists = !broken, true
		}
		if n.kind == object && !colon {
			t.colon, colon = string(t.text[keyEnd(t.text, first):first.value.start]), true
		}
		if len(n.items) > 1 && !broken && !comma {
			t.tightCommas, comma = n.items[1].start == t.commaAfter(first.end)+1, true
		}
	})
	if strings.Trim(t.colon, " :") != "" {
		t.colon = ": "
	}
	if strings.Trim(t.pad, " ") != "" {
		t.pad = ""
	}
	if !comma {
		t.tightCommas = t.colon == ":"
	}
}

// keyEnd returns the end of an item's key.
func keyEnd(text []byte, it item) int {
	end := it.start + 1
	for ; text[end] != '"'; end++ {
		if text[end] == '\\' {
			end++
		}
	}
	return end + 1
}

func allScalars(n *node) bool {
	for i := range n.items {
		if n.items[i].value.kind != scalar {
			return false
		}
	}
	return true
}

func (jsonSyntax) setValue(text []byte, model any, path []string, value any) ([]byte, error) {
	t, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	if t.root == nil {
		return applySplices(text, []splice{t.appendLines(t.writeValue(nestValue(path, value), "", false))})
	}
	p, err := locatePath(t.root, model, path)
	if err != nil {
		return nil, err
	}
	if p.container != nil && p.index < 0 {
		return applySplices(text, t.insertItem(p.container, t.needsOneLine(p), t.newItemWriter(p.container, p.rest, value)))
	}
	return applySplices(text, []splice{{p.node.start, p.node.end, t.writeReplacement(p, nestValue(p.rest, value))}})
}

// needsOneLine reports whether the item must share the line of the empty object or list that
// receives it.
func (t *jsonText) needsOneLine(p location) bool {
	if t.compact {
		return true
	}
	if len(p.holders) == 0 {
		return false
	}
	outer := p.holders[len(p.holders)-1]
	return outer.container != t.root && !t.hasBreak(outer.container.start, outer.container.end)
}

// newItemWriter returns the writer of a new item of n for the missing rest of a path.
func (t *jsonText) newItemWriter(n *node, rest []string, value any) itemWriter {
	return func(indent string, line bool) string {
		if n.kind == list {
			return t.writeValue(nestValue(rest, value).([]any)[0], indent, line || t.siblingOnOneLine(n))
		}
		return quoteJSON(rest[0]) + t.colon + t.writeValue(nestValue(rest[1:], value), indent, line || t.siblingOnOneLine(n))
	}
}

// siblingOnOneLine reports whether the last item of n is an object on one line. The next item then
// follows its style.
func (t *jsonText) siblingOnOneLine(n *node) bool {
	if len(n.items) == 0 {
		return false
	}
	v := n.items[len(n.items)-1].value
	return v.kind == object && len(v.items) > 0 && !t.hasBreak(v.start, v.end)
}

// writeReplacement formats v to replace the value at p. It stays on one line if the old value was.
func (t *jsonText) writeReplacement(p location, v any) string {
	old := p.node
	line := t.compact
	if p.container != nil {
		line = line || !t.isFirstOnLine(p.container.items[p.index].start)
	}
	if len(old.items) > 0 {
		broken := t.hasBreak(old.start, old.end)
		line = line || !broken
		if old.kind == list {
			t.oneLists = !broken
		}
	}
	return t.writeValue(v, t.indentAt(old.start), line)
}

func (t *jsonText) writeValue(v any, indent string, line bool) string {
	var items []string
	pad, opening, closing := t.pad, "{", "}"
	inside := indent + t.indentUnit
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, quoteJSON(m.Key)+t.colon+t.writeValue(m.Value, inside, line))
		}
	case []any:
		line = line || t.oneLists && onlyScalars(v)
		pad, opening, closing = "", "[", "]"
		for _, e := range v {
			items = append(items, t.writeValue(e, inside, line))
		}
	default:
		return writeJSON(v)
	}
	if len(items) == 0 {
		return opening + closing
	}
	if line {
		gap := ", "
		if t.tightCommas {
			gap = ","
		}
		return opening + pad + strings.Join(items, gap) + pad + closing
	}
	last := ""
	if t.trailingComma {
		last = ","
	}
	return opening + t.newline + inside + strings.Join(items, ","+t.newline+inside) + last + t.newline + indent + closing
}

func onlyScalars(l []any) bool {
	for _, v := range l {
		switch v.(type) {
		case Object, []any:
			return false
		}
	}
	return true
}

func (jsonSyntax) removeValue(text []byte, model any, path []string) ([]byte, error) {
	t, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	p, err := locatePath(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return applySplices(text, t.removeItem(p.container, p.index))
}

func quoteJSON(s string) string {
	b, err := jsontext.AppendQuote(nil, s) // <, > and & stay as they are
	if err != nil {
		return quoteString(s)
	}
	return string(b)
}

// writeJSON formats a scalar.
func writeJSON(v any) string {
	switch v := v.(type) {
	case string:
		return quoteJSON(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return writeFloat(v)
	case Literal:
		return quoteJSON(string(v))
	}
	return "null"
}

// writeFloat formats whole numbers without a point if they are exact.
func writeFloat(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	b, _ := json.Marshal(f) // cannot fail: normalize rejects NaN and infinities
	return string(b)
}
