package edit

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

type tomlDialect struct{}

func (tomlDialect) parse(text []byte) (any, error) {
	var v map[string]any
	if err := toml.Unmarshal(text, &v); err != nil {
		return nil, tomlError(err)
	}
	return tomlModel(v)
}

// codePoint is how the parser writes characters.
var codePoint = regexp.MustCompile(`U\+[0-9A-F]+ ?('.*')?`)

// tomlError says where a text is no TOML, without what only the parser knows.
func tomlError(err error) error {
	text := codePoint.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "$1")
	var where *toml.DecodeError
	if !errors.As(err, &where) {
		return errors.New(text)
	}
	line, column := where.Position()
	return fmt.Errorf("line %d, column %d: %s", line, column, text)
}

func tomlModel(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		o := Object{}
		for key, value := range v {
			m, err := tomlModel(value)
			if err != nil {
				return nil, err
			}
			o = append(o, Member{key, m})
		}
		slices.SortFunc(o, compareKeys)
		return o, nil
	case []any:
		l := make([]any, len(v))
		for i := range v {
			var err error
			if l[i], err = tomlModel(v[i]); err != nil {
				return nil, err
			}
		}
		return l, nil
	case bool, string, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return Literal(fmt.Sprint(v)), nil
		}
		return v, nil
	case time.Time:
		return Literal(v.Format(time.RFC3339Nano)), nil
	}
	return Literal(fmt.Sprint(v)), nil // a local date or time
}

// tomlText is a file of TOML and its style.
type tomlText struct {
	flow
	statements []statement
	root       *tomlTable
	oneLists   bool // lists of scalars go into one line
}

func readTOML(text []byte) (*tomlText, error) {
	t := &tomlText{oneLists: true}
	t.document = newDocument(text, hashComment)
	t.unit = "  "
	var err error
	if t.statements, err = scanTOML(text); err != nil {
		return nil, err
	}
	t.root = treeOf(t.statements)
	t.style()
	return t, nil
}

func (t *tomlText) style() {
	var lists, unit bool
	for _, st := range t.statements {
		if st.value == nil {
			continue
		}
		st.value.walk(func(n *node) {
			if n.kind != list || len(n.items) == 0 {
				return
			}
			broken := t.hasBreak(n.open, n.close)
			if allScalars(n) && !lists {
				t.oneLists, lists = !broken, true
			}
			if first := n.items[0]; broken && t.first(first.start) {
				if indent := t.indent(first.start); !unit && len(indent) > len(t.indent(n.start)) {
					t.unit, unit = indent[len(t.indent(n.start)):], true
				}
				t.trailing = t.trailing || t.comma(n.items[len(n.items)-1].end) >= 0
			}
		})
	}
}

// spot is where a path leads in a file of TOML.
type spot struct {
	table *tomlTable // the last table on the way
	entry *tomlEntry // in it; nil if there is none
	index int        // the table of entry.array; -1 if the path ends at the array, or has no such one yet
	model any        // of table, or of what entry holds
	rest  []string   // of the path: below entry, or with the key that is not there
}

// locate follows a path as far as there are tables.
func (t *tomlText) locate(model any, path []string) (spot, error) {
	at := spot{table: t.root, index: -1, model: model, rest: path}
	for len(at.rest) > 0 {
		i, err := child(at.model, at.rest[0])
		if err != nil {
			return spot{}, err
		}
		e := at.table.entry(at.rest[0])
		if (e == nil) != (i < 0) {
			return spot{}, fmt.Errorf("%q is written elsewhere: %w", at.rest[0], ErrUnsafe)
		}
		if e == nil {
			at.entry, at.index = nil, -1
			return at, nil
		}
		at.entry, at.index, at.model, at.rest = e, -1, nth(at.model, i), at.rest[1:]
		switch {
		case e.value != nil || len(at.rest) == 0:
			return at, nil
		case e.table != nil:
			at.table = e.table
		default:
			if at.index, err = child(at.model, at.rest[0]); err != nil || at.index < 0 {
				return at, err
			}
			if at.index >= len(e.array) {
				return spot{}, ErrUnsafe
			}
			at.table, at.model, at.rest = e.array[at.index], nth(at.model, at.index), at.rest[1:]
		}
	}
	return at, nil
}

func (tomlDialect) set(text []byte, model any, path []string, value any) ([]byte, error) {
	if hasNull(value) {
		return nil, fmt.Errorf("TOML has no null")
	}
	t, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	at, err := t.locate(model, path)
	if err != nil {
		return nil, err
	}
	switch e := at.entry; {
	case e == nil:
		return apply(text, t.add(at.table, at.rest, value))
	case e.value != nil:
		return t.setValue(e.value, at, value)
	case len(at.rest) > 0: // a new entry of an array of tables
		return apply(text, t.addTable(t.end(e.statements(nil)), e.array[0].path, nest(at.rest, value).([]any)[0].(Object), true))
	}
	// Tables become something else.
	if text, err = (tomlDialect{}).remove(text, model, path); err != nil {
		return nil, err
	}
	if model, err = (tomlDialect{}).parse(text); err != nil {
		return nil, err
	}
	return (tomlDialect{}).set(text, model, path, value)
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case Object:
		return slices.ContainsFunc(v, func(m Member) bool { return hasNull(m.Value) })
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// setValue edits the value of an assignment.
func (t *tomlText) setValue(root *node, at spot, value any) ([]byte, error) {
	p, err := locate(root, at.model, at.rest)
	if err != nil {
		return nil, err
	}
	if p.container != nil && p.index < 0 {
		n := p.container
		line := n.kind == object || !t.hasBreak(n.open, n.close)
		return apply(t.text, t.insert(n, line, func(indent string, line bool) string {
			if n.kind == list {
				return t.value(nest(p.rest, value).([]any)[0], indent, line)
			}
			member := tomlKey(p.rest[0]) + " = " + t.value(nest(p.rest[1:], value), indent, true)
			if len(n.items) == 0 {
				return " " + member + " "
			}
			return member
		}))
	}
	line := false
	if len(p.node.items) > 0 && p.node.kind == list {
		t.oneLists = !t.hasBreak(p.node.open, p.node.close)
	}
	for _, h := range p.holders {
		line = line || h.container.kind == object
	}
	return apply(t.text, []splice{{p.node.start, p.node.end, t.value(nest(p.rest, value), t.indent(p.node.start), line)}})
}

func (tomlDialect) remove(text []byte, model any, path []string) ([]byte, error) {
	t, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	at, err := t.locate(model, path)
	if err != nil {
		return nil, err
	}
	e := at.entry
	switch {
	case e == nil:
		return nil, ErrUnsafe
	case e.value != nil && len(at.rest) > 0:
		p, err := locate(e.value, at.model, at.rest)
		if err != nil {
			return nil, err
		}
		return apply(text, t.flow.remove(p.container, p.index))
	case at.index >= 0 && len(at.rest) == 0:
		return apply(text, t.removeAll(e.array[at.index].statements(nil)))
	}
	return apply(text, t.removeAll(e.statements(nil)))
}

// removeAll removes statements.
func (t *tomlText) removeAll(list []int) []splice {
	slices.Sort(list)
	var splices []splice
	for len(list) > 0 {
		n := 1 // how many stand one behind the other
		for n < len(list) && list[n] == list[0]+n {
			n++
		}
		splices = append(splices, t.removal(list[0], list[n-1]))
		list = list[n:]
	}
	return splices
}

// removal removes the statements from first to last, which are together either assignments or whole sections.
func (t *tomlText) removal(first, last int) splice {
	start := t.attached(lineStart(t.text, t.statements[first].start), 0, anyLine)
	if t.statements[first].kind == assignment {
		return t.cut(start, t.statements[last].end)
	}
	s := t.cut(start, t.endOfSection(last))
	rest := t.text[s.end:]
	if len(bytes.TrimSpace(rest)) == 0 { // the last section: the blank lines before it go
		kept := trimmed(t.text, 0, start)
		if kept == 0 {
			return splice{0, len(t.text), ""}
		}
		if s.start < start { // the text has no line break at its end
			return splice{kept, s.end, ""}
		}
		return splice{nextLine(t.text, kept), s.end, ""}
	}
	if start == 0 || t.blankOnly(lineStart(t.text, start-1), start) {
		for line := s.end; line < len(t.text) && t.blankOnly(line, nextLine(t.text, line)); line = nextLine(t.text, line) {
			s.end = nextLine(t.text, line)
		}
	}
	return s
}

// endOfSection returns the end of a statement's lines with the comments directly below, unless they belong to what follows.
func (t *tomlText) endOfSection(i int) int {
	end, _ := t.behind(t.statements[i].end)
	at := lineEnd(t.text, end)
	for {
		line := nextLine(t.text, at)
		if line <= at || line >= len(t.text) {
			return at
		}
		if !t.isComment(line) {
			if i+1 < len(t.statements) && lineStart(t.text, t.statements[i+1].start) == line {
				return lineEnd(t.text, end)
			}
			return at
		}
		at = lineEnd(t.text, line)
	}
}

// end returns where a section goes that follows these statements: behind the last one's lines.
func (t *tomlText) end(list []int) int { return t.endOfSection(slices.Max(list)) }
