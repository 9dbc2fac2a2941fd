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

type jsonDialect struct{}

// jsonComment reads // and /* */.
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

func (jsonDialect) parse(text []byte) (any, error) {
	root, err := jsonTree(text)
	if root == nil || err != nil {
		return nil, err
	}
	return jsonModel(*root)
}

// jsonTree returns nil for a text that has nothing but comments.
func jsonTree(text []byte) (*hujson.Value, error) {
	d := newDocument(text, jsonComment)
	if d.space(0) == len(text) {
		return nil, nil
	}
	// A comment may end with the file, which hujson does not think.
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
		v, err := number(string(l))
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

// jsonText is a file of JSON and its style.
type jsonText struct {
	flow
	root     *node
	colon    string
	compact  bool   // the file is one line
	pad      string // inside the braces of an object on one line
	oneLists bool   // lists of scalars go into one line
}

func readJSON(text []byte) (*jsonText, error) {
	t := &jsonText{flow: flow{document: newDocument(text, jsonComment), unit: "  "}, colon: ": ", oneLists: true}
	v, err := jsonTree(text)
	if err != nil || v == nil {
		return t, err
	}
	t.root = jsonNode(*v)
	t.compact = len(t.root.items) > 0 && !t.hasBreak(t.root.start, t.root.end)
	t.style()
	return t, nil
}

// style sees how the file is written: for each thing the first example counts.
func (t *jsonText) style() {
	var unit, pad, lists, colon, comma bool
	t.root.walk(func(n *node) {
		if len(n.items) == 0 {
			return
		}
		first, broken := n.items[0], t.hasBreak(n.open, n.close)
		if broken && t.first(first.start) {
			outer, inner := t.indent(n.start), t.indent(first.start)
			if rest, ok := strings.CutPrefix(inner, outer); ok && rest != "" && !unit {
				t.unit, unit = rest, true
			}
			t.trailing = t.trailing || t.comma(n.items[len(n.items)-1].end) >= 0
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
			t.tight, comma = n.items[1].start == t.comma(first.end)+1, true
		}
	})
	if strings.Trim(t.colon, " :") != "" {
		t.colon = ": "
	}
	if strings.Trim(t.pad, " ") != "" {
		t.pad = ""
	}
	if !comma {
		t.tight = t.colon == ":"
	}
}

// keyEnd returns where an item's key ends.
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

func (jsonDialect) set(text []byte, model any, path []string, value any) ([]byte, error) {
	t, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	if t.root == nil {
		return apply(text, []splice{t.appended(t.value(nest(path, value), "", false))})
	}
	p, err := locate(t.root, model, path)
	if err != nil {
		return nil, err
	}
	if p.container != nil && p.index < 0 {
		return apply(text, t.insert(p.container, t.line(p), t.item(p.container, p.rest, value)))
	}
	return apply(text, []splice{{p.node.start, p.node.end, t.replacement(p, nest(p.rest, value))}})
}

// line reports whether an item goes into one line with the empty object or list that gets it.
func (t *jsonText) line(p place) bool {
	if t.compact {
		return true
	}
	if len(p.holders) == 0 {
		return false
	}
	outer := p.holders[len(p.holders)-1]
	return outer.container != t.root && !t.hasBreak(outer.container.start, outer.container.end)
}

// item writes a new item of n for the rest of a path.
func (t *jsonText) item(n *node, rest []string, value any) writer {
	return func(indent string, line bool) string {
		if n.kind == list {
			return t.value(nest(rest, value).([]any)[0], indent, line || t.siblingOnOneLine(n))
		}
		return quoteJSON(rest[0]) + t.colon + t.value(nest(rest[1:], value), indent, line || t.siblingOnOneLine(n))
	}
}

// siblingOnOneLine reports whether n's last item is an object on one line: then the next one is too.
func (t *jsonText) siblingOnOneLine(n *node) bool {
	if len(n.items) == 0 {
		return false
	}
	v := n.items[len(n.items)-1].value
	return v.kind == object && len(v.items) > 0 && !t.hasBreak(v.start, v.end)
}

// replacement writes a value in the place of another, of which it takes over whether it goes into one line.
func (t *jsonText) replacement(p place, v any) string {
	old := p.node
	line := t.compact
	if p.container != nil {
		line = line || !t.first(p.container.items[p.index].start)
	}
	if len(old.items) > 0 {
		broken := t.hasBreak(old.start, old.end)
		line = line || !broken
		if old.kind == list {
			t.oneLists = !broken
		}
	}
	return t.value(v, t.indent(old.start), line)
}

func (t *jsonText) value(v any, indent string, line bool) string {
	var items []string
	pad, opening, closing := t.pad, "{", "}"
	inside := indent + t.unit
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, quoteJSON(m.Key)+t.colon+t.value(m.Value, inside, line))
		}
	case []any:
		line = line || t.oneLists && scalars(v)
		pad, opening, closing = "", "[", "]"
		for _, e := range v {
			items = append(items, t.value(e, inside, line))
		}
	default:
		return writeJSON(v)
	}
	if len(items) == 0 {
		return opening + closing
	}
	if line {
		gap := ", "
		if t.tight {
			gap = ","
		}
		return opening + pad + strings.Join(items, gap) + pad + closing
	}
	last := ""
	if t.trailing {
		last = ","
	}
	return opening + t.newline + inside + strings.Join(items, ","+t.newline+inside) + last + t.newline + indent + closing
}

func scalars(l []any) bool {
	for _, v := range l {
		switch v.(type) {
		case Object, []any:
			return false
		}
	}
	return true
}

func (jsonDialect) remove(text []byte, model any, path []string) ([]byte, error) {
	t, err := readJSON(text)
	if err != nil {
		return nil, err
	}
	p, err := locate(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return apply(text, t.remove(p.container, p.index))
}

func quoteJSON(s string) string {
	b, err := jsontext.AppendQuote(nil, s) // <, > and & stay as they are
	if err != nil {
		return quote(s)
	}
	return string(b)
}

// writeJSON writes a scalar.
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

// writeFloat writes whole numbers without a point, as far as they are exact.
func writeFloat(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	b, _ := json.Marshal(f) // finite: normal has seen to it
	return string(b)
}
