package edit

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
)

type yamlSyntax struct{}

func (yamlSyntax) parseText(text []byte) (v any, err error) {
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
		return unsignedValue(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Literal(fmt.Sprint(v)), nil
		}
		return v, nil
	}
	return Literal(fmt.Sprintf("%T %v", v, v)), nil
}

// yamlText is a YAML file and its style.
type yamlText struct {
	flow
	root      *node
	step      int  // the indentation of members
	listStep  int  // the indentation of lists below their key
	flowLists bool // lists of scalars are written in brackets
}

func readYAML(text []byte) (*yamlText, error) {
	t := &yamlText{step: 2, listStep: -1}
	t.document = newDocument(text, yamlComment)
	root, err := scanYAML(text)
	if err != nil {
		return nil, err
	}
	t.root = root
	t.detectStyle()
	return t, nil
}

// yamlComment skips a comment. A # begins a comment only after white space or a bracket.
func yamlComment(text []byte, pos int) int {
	if pos > 0 && pos < len(text) && !isSpace(text[pos-1]) && !strings.ContainsRune(",[]{}", rune(text[pos-1])) {
		return pos
	}
	return hashComment(text, pos)
}

func (t *yamlText) detectStyle() {
	var step, lists bool
	t.root.eachNode(func(n *node) {
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
	t.indentUnit = strings.Repeat(" ", t.step)
}

func (yamlSyntax) setValue(text []byte, model any, path []string, value any) ([]byte, error) {
	t, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	p, err := locatePath(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return applySplices(text, t.setAt(p, value))
}

func (t *yamlText) setAt(p location, value any) []splice {
	switch {
	case p.container == nil:
		return t.setRoot(nestValue(p.rest, value))
	case p.index >= 0:
		return t.replaceItem(p.container, p.index, nestValue(p.rest, value))
	case !p.container.block && len(p.container.items) == 0:
		return t.openBrackets(p, nestValue(p.rest, value))
	case !p.container.block:
		return t.insertItem(p.container, false, t.newFlowWriter(p.container, p.rest, value))
	}
	n := p.container
	at := t.endOfItem(n.items[len(n.items)-1].end, n.column)
	return []splice{{at, at, t.newline + repeatSpace(n.column) + t.writeItem(n, p.rest, value)}}
}

// setRoot writes the value of an empty file.
func (t *yamlText) setRoot(v any) []splice {
	lines := t.writeLines(v, 0)
	if t.root.end > t.root.start {
		return []splice{{t.root.start, t.root.end, lines}}
	}
	if t.blankOnly(t.root.start, len(t.text)) {
		return []splice{t.appendLines(lines)}
	}
	return []splice{{t.root.start, t.root.start, lines + t.newline}}
}

// openBrackets adds the first item to empty brackets, and turns them into lines if possible.
func (t *yamlText) openBrackets(p location, v any) []splice {
	n := p.container
	if !t.blankOnly(n.open, n.close) {
		return t.insertFirstItem(n, false, t.newFlowWriter(n, p.rest, unnestValue(p.rest, v)))
	}
	if len(p.holders) == 0 {
		return []splice{{n.start, n.end, t.writeLines(v, 0)}}
	}
	outer := p.holders[len(p.holders)-1]
	return t.replaceItem(outer.container, outer.index, v)
}

// unnestValue is the inverse of nestValue.
func unnestValue(path []string, v any) any {
	inner, _, _ := lookUp(v, path)
	return inner
}

// newFlowWriter returns the writer of a new item in brackets for the missing rest of a path.
func (t *yamlText) newFlowWriter(n *node, rest []string, value any) itemWriter {
	return func(string, bool) string {
		if n.kind == list {
			return t.writeFlow(nestValue(rest, value).([]any)[0])
		}
		return yamlString(rest[0]) + ": " + t.writeFlow(nestValue(rest[1:], value))
	}
}

// writeItem formats a new item on its own lines for the missing rest of a path.
func (t *yamlText) writeItem(n *node, rest []string, value any) string {
	if n.kind == list {
		return "- " + t.writeAfterDash(nestValue(rest, value).([]any)[0], n.column+2)
	}
	return yamlString(rest[0]) + ":" + t.writeAfterColon(nestValue(rest[1:], value), n.column)
}

// endOfItem returns the end of the lines of the item that ends at pos. It includes a comment
// on the line and the comments below that are indented deeper than column.
func (t *yamlText) endOfItem(pos, column int) int {
	at, _ := t.skipLineComments(pos)
	if at < lineEnd(t.text, at) && t.blankOnly(at, lineEnd(t.text, at)) {
		at = lineEnd(t.text, at)
	}
	for {
		line := nextLine(t.text, at)
		if line == lineStart(t.text, at) || line >= len(t.text) || !t.isComment(line) || t.skipBlanks(line)-line <= column {
			return at
		}
		at = lineEnd(t.text, line)
	}
}

// replaceItem replaces the value of item i.
func (t *yamlText) replaceItem(n *node, i int, v any) []splice {
	it := n.items[i]
	old := it.value
	if !n.block {
		return []splice{{old.start, old.end, t.missingSpace(it) + t.writeFlow(v)}}
	}
	onLine := !t.hasBreak(it.after, old.start)
	if s, ok := t.writeInline(old, v); ok {
		if onLine {
			return []splice{{old.start, old.end, t.missingSpace(it) + s}}
		}
		start := t.commentsStart(lineStart(t.text, old.start), nextLine(t.text, it.after), t.hasIndent(old.start))
		return []splice{{it.after, it.after, " " + s}, {lineEnd(t.text, start-1), old.end, ""}}
	}
	_, isList := v.([]any)
	column := t.valueColumn(n, isList)
	if n.kind == list && onLine {
		return []splice{{old.start, old.end, t.missingSpace(it) + t.writeAfterDash(v, n.column+2)}}
	}
	if !onLine {
		if old.block && old.kind == list && isList {
			column = old.column
		}
		return []splice{{lineStart(t.text, old.start), old.end, repeatSpace(column) + t.writeLines(v, column)}}
	}
	start := old.start
	for start > it.after && isBlank(t.text[start-1]) {
		start--
	}
	at, _ := t.skipLineComments(old.end)
	lines := t.newline + repeatSpace(column) + t.writeLines(v, column)
	if at == old.end {
		return []splice{{start, at, lines}}
	}
	return []splice{{start, old.end, ""}, {at, at, lines}}
}

// missingSpace returns the space needed before a value that was left out.
func (t *yamlText) missingSpace(it item) string {
	if it.value.start == it.value.end && it.value.start > 0 && !isSpace(t.text[it.value.start-1]) {
		return " "
	}
	return ""
}

// hasIndent returns a function that accepts lines with the indentation of pos.
func (t *yamlText) hasIndent(pos int) func(line int) bool {
	indent := pos - lineStart(t.text, pos)
	return func(line int) bool { return t.skipBlanks(line)-line == indent }
}

// valueColumn returns the column at which the lines of an item's value begin.
func (t *yamlText) valueColumn(n *node, isList bool) int {
	switch {
	case n.kind == list:
		return n.column + 2
	case isList:
		return n.column + t.listStep
	}
	return n.column + t.step
}

func (yamlSyntax) removeValue(text []byte, model any, path []string) ([]byte, error) {
	t, err := readYAML(text)
	if err != nil {
		return nil, err
	}
	p, err := locatePath(t.root, model, path)
	if err != nil {
		return nil, err
	}
	return applySplices(text, t.removeAt(p))
}

func (t *yamlText) removeAt(p location) []splice {
	n, i := p.container, p.index
	switch {
	case !n.block:
		return t.flow.removeItem(n, i)
	case len(n.items) == 1:
		return t.removeOnlyItem(p)
	}
	it := n.items[i]
	if !t.isFirstOnLine(it.start) { // after a dash
		return []splice{{it.start, n.items[i+1].start, ""}}
	}
	start := t.commentsStart(lineStart(t.text, it.start), 0, t.hasIndent(it.start))
	return []splice{t.cutLines(start, t.endOfItem(it.end, n.column))}
}

// removeOnlyItem removes the only item and leaves empty brackets. Without them the value would
// become null.
func (t *yamlText) removeOnlyItem(p location) []splice {
	n := p.container
	empty := any(Object{})
	if n.kind == list {
		empty = []any{}
	}
	if len(p.holders) < 2 {
		start := t.commentsStart(lineStart(t.text, n.start), 0, t.hasIndent(n.start))
		if !t.isFirstOnLine(n.start) {
			start = n.start
		}
		return []splice{{start, t.endOfItem(n.end, n.column), t.writeFlow(empty)}}
	}
	outer := p.holders[len(p.holders)-2]
	splices := t.replaceItem(outer.container, outer.index, empty)
	last := &splices[len(splices)-1]
	last.end = max(last.end, t.endOfItem(n.end, n.column))
	return splices
}

func repeatSpace(n int) string { return strings.Repeat(" ", n) }

// trimmedEnd returns the end of a span without trailing white space.
func trimmedEnd(text []byte, start, end int) int {
	return start + len(bytes.TrimRight(text[start:end], " \t\r\n"))
}
