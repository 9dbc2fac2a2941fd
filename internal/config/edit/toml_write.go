package edit

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// add writes what is not there yet: rest[0] is a key that table has not.
func (t *tomlText) add(table *tomlTable, rest []string, value any) []splice {
	key, v := rest[0], nest(rest[1:], value)
	if !table.inArray && table.dotted == nil && t.tableStyle(table) {
		if o, ok := v.(Object); ok {
			return t.addTable(t.behindLast(table), below(table.path, key), o, false)
		}
		if entry, ok := namedEntry(rest, v); ok {
			return t.addTable(t.behindLast(table), below(table.path, key), entry, true)
		}
	}
	switch {
	case table.dotted != nil:
		line := strings.Join(tomlKeys(append(table.prefixes[:len(table.prefixes):len(table.prefixes)], key)), ".") + " = "
		return t.addLine(slices.Max(table.statements(nil)), line, v)
	case len(table.body) > 0:
		return t.addLine(slices.Max(table.body), tomlKey(key)+" = ", v)
	case table.header >= 0:
		return t.addLine(table.header, tomlKey(key)+" = ", v)
	case len(table.path) > 0: // a table that is there by its subtables only
		return t.addTable(t.behindLast(table), table.path, Object{{key, v}}, false)
	}
	return t.addTop(tomlKey(key) + " = " + t.value(v, "", false))
}

// namedEntry returns the first entry of a list that a path with a selector makes.
func namedEntry(rest []string, v any) (Object, bool) {
	if len(rest) < 2 {
		return nil, false
	}
	if _, _, ok := selector(rest[1]); !ok {
		return nil, false
	}
	o, ok := v.([]any)[0].(Object)
	return o, ok
}

// tableStyle reports whether an object in table gets a header of its own: not if the last one there has none.
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

// behindLast returns where another table in table goes: behind the last one there, else behind table's own lines; -1 if the file
// has nothing.
func (t *tomlText) behindLast(table *tomlTable) int {
	for i := len(table.entries) - 1; i >= 0; i-- {
		if e := table.entries[i]; e.value == nil && (e.table == nil || e.table.dotted == nil) {
			return t.end(e.statements(nil))
		}
	}
	if list := table.statements(nil); len(list) > 0 {
		return t.end(list)
	}
	return -1
}

// addTable writes an object with a header.
func (t *tomlText) addTable(at int, path []string, o Object, array bool) []splice {
	text := strings.Join(t.sections(path, o, array), t.newline+t.newline)
	if at >= 0 {
		return []splice{{at, at, t.newline + t.newline + text}}
	}
	switch n := len(t.text); {
	case t.blankOnly(0, n):
		return []splice{{0, n, text + t.newline}}
	case t.text[n-1] == '\n': // below comments
		return []splice{{n, n, t.newline + text + t.newline}}
	default:
		return []splice{{n, n, t.newline + t.newline + text}}
	}
}

// sections writes an object, each of its objects with its own header if it has nothing else.
func (t *tomlText) sections(path []string, o Object, array bool) []string {
	var parts []string
	for _, m := range o {
		inner, ok := m.Value.(Object)
		if !ok || array {
			parts = nil
			break
		}
		parts = append(parts, t.sections(below(path, m.Key), inner, false)...)
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
		lines = append(lines, tomlKey(m.Key)+" = "+t.value(m.Value, "", false))
	}
	return []string{strings.Join(lines, t.newline)}
}

// addLine writes an assignment below a statement.
func (t *tomlText) addLine(behind int, key string, v any) []splice {
	st := t.statements[behind]
	at := lineEnd(t.text, st.end)
	indent := t.indent(st.start)
	return []splice{{at, at, t.newline + indent + key + t.value(v, indent, false)}}
}

// addTop writes the first assignment of a file, before all sections.
func (t *tomlText) addTop(line string) []splice {
	if len(t.statements) == 0 {
		return []splice{t.appended(line)}
	}
	at := t.attached(lineStart(t.text, t.statements[0].start), 0, anyLine)
	return []splice{{at, at, line + t.newline + t.newline}}
}

// value writes a value. line is whether it must go into one line; what is in braces does.
func (t *tomlText) value(v any, indent string, line bool) string {
	switch v := v.(type) {
	case Object:
		if len(v) == 0 {
			return "{}"
		}
		var items []string
		for _, m := range v {
			items = append(items, tomlKey(m.Key)+" = "+t.value(m.Value, indent, true))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case []any:
		return t.list(v, indent, line)
	case string:
		return quote(v)
	case Literal:
		return string(v)
	case float64:
		return tomlFloat(v)
	}
	return writeJSON(v)
}

func (t *tomlText) list(l []any, indent string, line bool) string {
	var items []string
	inside := indent + t.unit
	for _, e := range l {
		items = append(items, t.value(e, inside, line))
	}
	if len(items) == 0 || line || t.oneLists {
		return "[" + strings.Join(items, ", ") + "]"
	}
	last := ""
	if t.trailing {
		last = ","
	}
	return "[" + t.newline + inside + strings.Join(items, ","+t.newline+inside) + last + t.newline + indent + "]"
}

// tomlFloat writes what is read as a float again.
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
			return quote(key)
		}
	}
	if key == "" {
		return quote(key)
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
