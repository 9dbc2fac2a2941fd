package edit

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// addMember adds the member rest[0], which table does not have.
func (t *tomlText) addMember(table *tomlTable, rest []string, value any) []splice {
	key, v := rest[0], nestValue(rest[1:], value)
	if !table.inArray && table.dotted == nil && t.tableStyle(table) {
		if o, ok := v.(Object); ok {
			return t.addTable(t.endOfLastTable(table), appendKey(table.path, key), o, false)
		}
		if entry, ok := namedEntry(rest, v); ok {
			return t.addTable(t.endOfLastTable(table), appendKey(table.path, key), entry, true)
		}
	}
	switch {
	case table.dotted != nil:
		line := strings.Join(tomlKeys(append(table.prefixes[:len(table.prefixes):len(table.prefixes)], key)), ".") + " = "
		return t.addLine(slices.Max(table.allStatements(nil)), line, v)
	case len(table.body) > 0:
		return t.addLine(slices.Max(table.body), tomlKey(key)+" = ", v)
	case table.header >= 0:
		return t.addLine(table.header, tomlKey(key)+" = ", v)
	case len(table.path) > 0: // a table that exists only through its subtables
		return t.addTable(t.endOfLastTable(table), table.path, Object{{key, v}}, false)
	}
	return t.addTop(tomlKey(key) + " = " + t.writeValue(v, "", false))
}

// namedEntry returns the first entry of the list that a path with a selector creates.
func namedEntry(rest []string, v any) (Object, bool) {
	if len(rest) < 2 {
		return nil, false
	}
	if _, _, ok := parseSelector(rest[1]); !ok {
		return nil, false
	}
	o, ok := v.([]any)[0].(Object)
	return o, ok
}

// tableStyle reports whether an object in table gets its own header. It follows the last object
// there.
func (t *tomlText) tableStyle(table *tomlTable) bool {
	for i := len(table.entries) - 1; i >= 0; i-- {
		switch e := table.entries[i]; {
		case e.value != nil && e.value.kind == object:
			return false
		case e.table != nil:
			return e.table.dotted == nil
		case e.array != nil:
			return true
		}
	}
	return true
}

// endOfLastTable returns the position for another table in table: after the last one there,
// otherwise after the lines of table, or -1 if the file has no statements.
func (t *tomlText) endOfLastTable(table *tomlTable) int {
	for i := len(table.entries) - 1; i >= 0; i-- {
		if e := table.entries[i]; e.value == nil && (e.table == nil || e.table.dotted == nil) {
			return t.endOfSections(e.allStatements(nil))
		}
	}
	if list := table.allStatements(nil); len(list) > 0 {
		return t.endOfSections(list)
	}
	return -1
}

// addTable writes an object as a table with a header.
func (t *tomlText) addTable(at int, path []string, o Object, array bool) []splice {
	text := strings.Join(t.writeSections(path, o, array), t.newline+t.newline)
	if at >= 0 {
		return []splice{{at, at, t.newline + t.newline + text}}
	}
	switch n := len(t.text); {
	case t.blankOnly(0, n):
		return []splice{{0, n, text + t.newline}}
	case t.text[n-1] == '\n': // the file holds only comments
		return []splice{{n, n, t.newline + text + t.newline}}
	default:
		return []splice{{n, n, t.newline + t.newline + text}}
	}
}

// writeSections formats an object as sections. An object that holds only objects gets no header of
// its own.
func (t *tomlText) writeSections(path []string, o Object, array bool) []string {
	var parts []string
	for _, m := range o {
		inner, ok := m.Value.(Object)
		if !ok || array {
			parts = nil
			break
		}
		parts = append(parts, t.writeSections(appendKey(path, m.Key), inner, false)...)
	}
	if len(parts) > 0 {
		return parts
	}
	opening, closing := "[", "]"
	if array {
		opening, closing = "[[", "]]"
	}
	lines := []string{opening + strings.Join(tomlKeys(path), ".") + closing}
	for _, m := range o {
		lines = append(lines, tomlKey(m.Key)+" = "+t.writeValue(m.Value, "", false))
	}
	return []string{strings.Join(lines, t.newline)}
}

// addLine writes an assignment below the statement with index behind.
func (t *tomlText) addLine(behind int, key string, v any) []splice {
	st := t.statements[behind]
	at := lineEnd(t.text, st.end)
	indent := t.indentAt(st.start)
	return []splice{{at, at, t.newline + indent + key + t.writeValue(v, indent, false)}}
}

// addTop writes the first assignment of a file, before all sections.
func (t *tomlText) addTop(line string) []splice {
	if len(t.statements) == 0 {
		return []splice{t.appendLines(line)}
	}
	at := t.commentsStart(lineStart(t.text, t.statements[0].start), 0, anyLine)
	return []splice{{at, at, line + t.newline + t.newline}}
}

// writeValue formats a value. line means that it must not contain line breaks, as inside inline
// tables.
func (t *tomlText) writeValue(v any, indent string, line bool) string {
	switch v := v.(type) {
	case Object:
		if len(v) == 0 {
			return "{}"
		}
		var items []string
		for _, m := range v {
			items = append(items, tomlKey(m.Key)+" = "+t.writeValue(m.Value, indent, true))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case []any:
		return t.writeList(v, indent, line)
	case string:
		return quoteString(v)
	case Literal:
		return string(v)
	case float64:
		return tomlFloat(v)
	}
	return writeJSON(v)
}

func (t *tomlText) writeList(l []any, indent string, line bool) string {
	var items []string
	inside := indent + t.indentUnit
	for _, e := range l {
		items = append(items, t.writeValue(e, inside, line))
	}
	if len(items) == 0 || line || t.oneLists {
		return "[" + strings.Join(items, ", ") + "]"
	}
	last := ""
	if t.trailingComma {
		last = ","
	}
	return "[" + t.newline + inside + strings.Join(items, ","+t.newline+inside) + last + t.newline + indent + "]"
}

// tomlFloat formats a float so that it is parsed as a float again.
func tomlFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if f == math.Trunc(f) && !strings.ContainsAny(s, "e.") {
		s += ".0"
	}
	return s
}

func tomlKey(key string) string {
	for i := range len(key) {
		if !bareKey(key[i]) {
			return quoteString(key)
		}
	}
	if key == "" {
		return quoteString(key)
	}
	return key
}

func tomlKeys(keys []string) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = tomlKey(key)
	}
	return list
}
