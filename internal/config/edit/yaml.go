package edit

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
)

type yamlDialect struct{}

func (yamlDialect) parse(text []byte) (v any, err error) {
	defer func() { // the library panics on some malformed input
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("it cannot be read: %v", r)
		}
	}()
	if _, err := readYAML(text); err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalWithOptions(text, &v, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	return yamlModel(v)
}

func yamlModel(v any) (any, error) {
	switch v := v.(type) {
	case yaml.MapSlice:
		o := Object{}
		for _, m := range v {
			value, err := yamlModel(m.Value)
			if err != nil {
				return nil, err
			}
			o = append(o, Member{fmt.Sprint(m.Key), value})
		}
		return o, nil
	case []any:
		l := make([]any, len(v))
		for i := range v {
			var err error
			if l[i], err = yamlModel(v[i]); err != nil {
				return nil, err
			}
		}
		return l, nil
	case nil, bool, string, int64:
		return v, nil
	case int:
		return int64(v), nil
	case uint64:
		return unsigned(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Literal(fmt.Sprint(v)), nil
		}
		return v, nil
	}
	return Literal(fmt.Sprintf("%T %v", v, v)), nil
}

// yamlText is a file of YAML and its style.
type yamlText struct {
	flow
	root      *node
	step      int  // members are indented by this
	listStep  int  // lists are indented by this under the key
	flowLists bool // lists of scalars are in brackets
}

func readYAML(text []byte) (*yamlText, error) {
	t := &yamlText{step: 2, listStep: -1}
	t.document = newDocument(text, yamlComment)
	root, err := scanYAML(text)
	if err != nil {
		return nil, err
	}
	t.root = root
	t.style()
	return t, nil
}

// yamlComment reads a comment: what a # begins behind white space.
func yamlComment(text []byte, pos int) int {
	if pos > 0 && pos < len(text) && !isSpace(text[pos-1]) && !strings.ContainsRune(",[]{}", rune(text[pos-1])) {
		return pos
	}
	return hashComment(text, pos)
}

func (t *yamlText) style() {
	var step, lists bool
	t.root.walk(func(n *node) {
		for _, it := range n.items {
			v := it.value
			if n.block && n.kind == object && v.block {
				switch {
				case v.kind == list && t.listStep < 0:
					t.listStep = v.column - n.column
				case v.kind == object && !step && v.column > n.column:
					t.step, step = v.column-n.column, true
				}
			}
			if v.kind == list && len(v.items) > 0 && !lists && allScalars(v) {
				t.flowLists, lists = !v.block, true
			}
		}
	})
	if t.listStep < 0 {
		t.listStep = t.step
	}
	t.unit = strings.Repeat(" ", t.step)
}

func (yamlDialect) set(text []byte, model any, path []string, value any) ([]byte, error) {
	t, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	p, err := locate(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return apply(text, t.set(p, value))
}

func (t *yamlText) set(p place, value any) []splice {
	switch {
	case p.container == nil:
		return t.setRoot(nest(p.rest, value))
	case p.index >= 0:
		return t.replace(p.container, p.index, nest(p.rest, value))
	case !p.container.block && len(p.container.items) == 0:
		return t.open(p, nest(p.rest, value))
	case !p.container.block:
		return t.insert(p.container, false, t.flowItem(p.container, p.rest, value))
	}
	n := p.container
	at := t.below(n.items[len(n.items)-1].end, n.column)
	return []splice{{at, at, t.newline + spaces(n.column) + t.item(n, p.rest, value)}}
}

// setRoot writes the first value of a file.
func (t *yamlText) setRoot(v any) []splice {
	lines := t.lines(v, 0)
	if t.root.end > t.root.start {
		return []splice{{t.root.start, t.root.end, lines}}
	}
	if t.blankOnly(t.root.start, len(t.text)) {
		return []splice{t.appended(lines)}
	}
	return []splice{{t.root.start, t.root.start, lines + t.newline}}
}

// open puts the first item into empty brackets, which become lines where they can.
func (t *yamlText) open(p place, v any) []splice {
	n := p.container
	if !t.blankOnly(n.open, n.close) {
		return t.insertFirst(n, false, t.flowItem(n, p.rest, unnest(p.rest, v)))
	}
	if len(p.holders) == 0 {
		return []splice{{n.start, n.end, t.lines(v, 0)}}
	}
	outer := p.holders[len(p.holders)-1]
	return t.replace(outer.container, outer.index, v)
}

// unnest is the inverse of nest.
func unnest(path []string, v any) any {
	inner, _, _ := find(v, path)
	return inner
}

// flowItem writes a new item of n, in brackets, for the rest of a path.
func (t *yamlText) flowItem(n *node, rest []string, value any) writer {
	return func(string, bool) string {
		if n.kind == list {
			return t.flow1(nest(rest, value).([]any)[0])
		}
		return yamlString(rest[0]) + ": " + t.flow1(nest(rest[1:], value))
	}
}

// item writes a new item of n, on lines of its own, for the rest of a path.
func (t *yamlText) item(n *node, rest []string, value any) string {
	if n.kind == list {
		return "- " + t.compact(nest(rest, value).([]any)[0], n.column+2)
	}
	return yamlString(rest[0]) + ":" + t.behindColon(nest(rest[1:], value), n.column)
}

// below returns where the lines of an item end whose text ends at pos: behind a comment on the line and those below that
// are indented deeper than column.
func (t *yamlText) below(pos, column int) int {
	at, _ := t.behind(pos)
	if at < lineEnd(t.text, at) && t.blankOnly(at, lineEnd(t.text, at)) {
		at = lineEnd(t.text, at)
	}
	for {
		line := nextLine(t.text, at)
		if line == lineStart(t.text, at) || line >= len(t.text) || !t.isComment(line) || t.blanks(line)-line <= column {
			return at
		}
		at = lineEnd(t.text, line)
	}
}

// replace writes a new value for an item.
func (t *yamlText) replace(n *node, i int, v any) []splice {
	it := n.items[i]
	old := it.value
	if !n.block {
		return []splice{{old.start, old.end, t.gap(it) + t.flow1(v)}}
	}
	onLine := !t.hasBreak(it.after, old.start)
	if s, ok := t.inline(old, v); ok {
		if onLine {
			return []splice{{old.start, old.end, t.gap(it) + s}}
		}
		start := t.attached(lineStart(t.text, old.start), nextLine(t.text, it.after), t.indented(old.start))
		return []splice{{it.after, it.after, " " + s}, {lineEnd(t.text, start-1), old.end, ""}}
	}
	_, isList := v.([]any)
	column := t.column(n, isList)
	if n.kind == list && onLine {
		return []splice{{old.start, old.end, t.gap(it) + t.compact(v, n.column+2)}}
	}
	if !onLine {
		if old.block && old.kind == list && isList {
			column = old.column
		}
		return []splice{{lineStart(t.text, old.start), old.end, spaces(column) + t.lines(v, column)}}
	}
	start := old.start
	for start > it.after && isBlank(t.text[start-1]) {
		start--
	}
	at, _ := t.behind(old.end)
	lines := t.newline + spaces(column) + t.lines(v, column)
	if at == old.end {
		return []splice{{start, at, lines}}
	}
	return []splice{{start, old.end, ""}, {at, at, lines}}
}

// gap is the space that a value needs that was left out.
func (t *yamlText) gap(it item) string {
	if it.value.start == it.value.end && it.value.start > 0 && !isSpace(t.text[it.value.start-1]) {
		return " "
	}
	return ""
}

// indented accepts comments that are indented like pos.
func (t *yamlText) indented(pos int) func(line int) bool {
	indent := pos - lineStart(t.text, pos)
	return func(line int) bool { return t.blanks(line)-line == indent }
}

// column returns where a value's lines begin that belongs to an item of n.
func (t *yamlText) column(n *node, isList bool) int {
	switch {
	case n.kind == list:
		return n.column + 2
	case isList:
		return n.column + t.listStep
	}
	return n.column + t.step
}

func (yamlDialect) remove(text []byte, model any, path []string) ([]byte, error) {
	t, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	p, err := locate(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return apply(text, t.remove(p))
}

func (t *yamlText) remove(p place) []splice {
	n, i := p.container, p.index
	switch {
	case !n.block:
		return t.flow.remove(n, i)
	case len(n.items) == 1:
		return t.removeOnly(p)
	}
	it := n.items[i]
	if !t.first(it.start) { // behind a dash
		return []splice{{it.start, n.items[i+1].start, ""}}
	}
	start := t.attached(lineStart(t.text, it.start), 0, t.indented(it.start))
	return []splice{t.cut(start, t.below(it.end, n.column))}
}

// removeOnly leaves empty brackets: without them there would be null.
func (t *yamlText) removeOnly(p place) []splice {
	n := p.container
	empty := any(Object{})
	if n.kind == list {
		empty = []any{}
	}
	if len(p.holders) < 2 {
		start := t.attached(lineStart(t.text, n.start), 0, t.indented(n.start))
		if !t.first(n.start) {
			start = n.start
		}
		return []splice{{start, t.below(n.end, n.column), t.flow1(empty)}}
	}
	outer := p.holders[len(p.holders)-2]
	splices := t.replace(outer.container, outer.index, empty)
	last := &splices[len(splices)-1]
	last.end = max(last.end, t.below(n.end, n.column))
	return splices
}

func spaces(n int) string { return strings.Repeat(" ", n) }

// trimmed returns the end of a span without the blanks at its end.
func trimmed(text []byte, start, end int) int {
	return start + len(bytes.TrimRight(text[start:end], " \t\r\n"))
}
