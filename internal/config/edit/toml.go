package edit

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// tomlSyntax edits TOML. The library that parses values gives no positions, so scanTOML finds the
// statements of the text, and buildTomlTree arranges them as tables. A table may be written in
// several places: as a header, as dotted keys, or inline.
type tomlSyntax struct{}

func (tomlSyntax) parseText(text []byte) (any, error) {
	var v map[string]any
	if err := toml.Unmarshal(text, &v); err != nil {
		return nil, tomlError(err)
	}
	return tomlModel(v)
}

// codePoint matches the code points in the parser's messages.
var codePoint = lazyregexp.New(`U\+[0-9A-F]+ ?('.*')?`)

// tomlError rewrites a parse error for users and adds its position.
func tomlError(err error) error {
	text := codePoint().ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "$1")
	var where *toml.DecodeError
	if !errors.As(err, &where) {
		return errors.New(text)
	}
	line, column := where.Position()
	return fmt.Errorf("line %d, column %d: %s", line, column, text)
}

// tomlModel converts the library's values. Keys are sorted, since the library loses their order.
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

// tomlText is a TOML file and its style.
type tomlText struct {
	flow
	statements []statement
	root       *tomlTable
	oneLists   bool // lists of scalars are written on one line
}

// readTOML scans a file and detects its style.
func readTOML(text []byte) (*tomlText, error) {
	t := &tomlText{oneLists: true}
	t.document = newDocument(text, hashComment)
	t.indentUnit = "  "
	var err error
	if t.statements, err = scanTOML(text); err != nil {
		return nil, err
	}
	t.root = buildTomlTree(t.statements)
	t.detectStyle()
	return t, nil
}

// detectStyle detects how arrays are written. The first example of each kind decides.
func (t *tomlText) detectStyle() {
	var lists, unit bool
	for _, st := range t.statements {
		if st.value == nil {
			continue
		}
		st.value.eachNode(func(n *node) {
			if n.kind != list || len(n.items) == 0 {
				return
			}
			broken := t.hasBreak(n.open, n.close)
			if allScalars(n) && !lists {
				t.oneLists, lists = !broken, true
			}
			if first := n.items[0]; broken && t.isFirstOnLine(first.start) {
				if indent := t.indentAt(first.start); !unit && len(indent) > len(t.indentAt(n.start)) {
					t.indentUnit, unit = indent[len(t.indentAt(n.start)):], true
				}
				t.trailingComma = t.trailingComma || t.commaAfter(n.items[len(n.items)-1].end) >= 0
			}
		})
	}
}

// tomlLocation is the result of following a path through the tables of a TOML file.
type tomlLocation struct {
	table *tomlTable // the last table on the path
	entry *tomlEntry // the entry in table; nil if it does not exist
	index int        // the table in entry.array; -1 if the path ends at the array or selects no existing table
	model any        // the parsed value of table or entry
	rest  []string   // the part of the path below entry, or from the missing key on
}

// locateTable follows path as far as tables exist.
func (t *tomlText) locateTable(model any, path []string) (tomlLocation, error) {
	at := tomlLocation{table: t.root, index: -1, model: model, rest: path}
	for len(at.rest) > 0 {
		i, err := childIndex(at.model, at.rest[0])
		if err != nil {
			return tomlLocation{}, err
		}
		e := at.table.findEntry(at.rest[0])
		if (e == nil) != (i < 0) {
			return tomlLocation{}, fmt.Errorf("%q is written elsewhere: %w", at.rest[0], ErrUnsafe)
		}
		if e == nil {
			at.entry, at.index = nil, -1
			return at, nil
		}
		at.entry, at.index, at.model, at.rest = e, -1, nthChild(at.model, i), at.rest[1:]
		switch {
		case e.value != nil || len(at.rest) == 0:
			return at, nil
		case e.table != nil:
			at.table = e.table
		default:
			if at.index, err = childIndex(at.model, at.rest[0]); err != nil || at.index < 0 {
				return at, err
			}
			if at.index >= len(e.array) {
				return tomlLocation{}, ErrUnsafe
			}
			at.table, at.model, at.rest = e.array[at.index], nthChild(at.model, at.index), at.rest[1:]
		}
	}
	return at, nil
}

func (tomlSyntax) setValue(text []byte, model any, path []string, value any) ([]byte, error) {
	if hasNull(value) {
		return nil, fmt.Errorf("TOML has no null")
	}
	t, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	at, err := t.locateTable(model, path)
	if err != nil {
		return nil, err
	}
	switch e := at.entry; {
	case e == nil:
		return applySplices(text, t.addMember(at.table, at.rest, value))
	case e.value != nil:
		return t.setValue(e.value, at, value)
	case len(at.rest) > 0: // a new entry of an array of tables
		return applySplices(text, t.addTable(t.endOfSections(e.allStatements(nil)), e.array[0].path, nestValue(at.rest, value).([]any)[0].(Object), true))
	}
	// Tables are replaced by a value of another kind.
	if text, err = (tomlSyntax{}).removeValue(text, model, path); err != nil {
		return nil, err
	}
	if model, err = (tomlSyntax{}).parseText(text); err != nil {
		return nil, err
	}
	return (tomlSyntax{}).setValue(text, model, path, value)
}

// hasNull reports whether v contains null.
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

// setValue edits inside the value of an assignment.
func (t *tomlText) setValue(root *node, at tomlLocation, value any) ([]byte, error) {
	p, err := locatePath(root, at.model, at.rest)
	if err != nil {
		return nil, err
	}
	if p.container != nil && p.index < 0 {
		n := p.container
		line := n.kind == object || !t.hasBreak(n.open, n.close)
		return applySplices(t.text, t.insertItem(n, line, func(indent string, line bool) string {
			if n.kind == list {
				return t.writeValue(nestValue(p.rest, value).([]any)[0], indent, line)
			}
			member := tomlKey(p.rest[0]) + " = " + t.writeValue(nestValue(p.rest[1:], value), indent, true)
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
	return applySplices(t.text, []splice{{p.node.start, p.node.end, t.writeValue(nestValue(p.rest, value), t.indentAt(p.node.start), line)}})
}

func (tomlSyntax) removeValue(text []byte, model any, path []string) ([]byte, error) {
	t, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	at, err := t.locateTable(model, path)
	if err != nil {
		return nil, err
	}
	e := at.entry
	switch {
	case e == nil:
		return nil, ErrUnsafe
	case e.value != nil && len(at.rest) > 0:
		p, err := locatePath(e.value, at.model, at.rest)
		if err != nil {
			return nil, err
		}
		return applySplices(text, t.flow.removeItem(p.container, p.index))
	case at.index >= 0 && len(at.rest) == 0:
		return applySplices(text, t.removeStatements(e.array[at.index].allStatements(nil)))
	}
	return applySplices(text, t.removeStatements(e.allStatements(nil)))
}

// removeStatements removes the statements with the given indexes.
func (t *tomlText) removeStatements(list []int) []splice {
	slices.Sort(list)
	var splices []splice
	for len(list) > 0 {
		n := 1 // the number of consecutive statements
		for n < len(list) && list[n] == list[0]+n {
			n++
		}
		splices = append(splices, t.statementsRemoval(list[0], list[n-1]))
		list = list[n:]
	}
	return splices
}

// statementsRemoval returns the splice that removes the statements from first to last, which must
// be either assignments or whole sections.
func (t *tomlText) statementsRemoval(first, last int) splice {
	start := t.commentsStart(lineStart(t.text, t.statements[first].start), 0, anyLine)
	if t.statements[first].kind == assignment {
		return t.cutLines(start, t.statements[last].end)
	}
	s := t.cutLines(start, t.endOfSection(last))
	rest := t.text[s.end:]
	if len(bytes.TrimSpace(rest)) == 0 { // for the last section, the blank lines before it go too
		kept := trimmedEnd(t.text, 0, start)
		if kept == 0 {
			return splice{0, len(t.text), ""}
		}
		if s.start < start { // the text has no final line break
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

// endOfSection returns the end of a statement's lines including the comments directly below, unless
// these comments belong to the next statement.
func (t *tomlText) endOfSection(i int) int {
	end, _ := t.skipLineComments(t.statements[i].end)
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

// endOfSections returns the position for a section that follows the given statements.
func (t *tomlText) endOfSections(list []int) int { return t.endOfSection(slices.Max(list)) }
