package toolcard

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// A result is shown as a table if it is JSON in one of these forms, without arrays or objects in
// cells:
//
//	[{"city": "Rome", "rain": 3}, {"city": "Oslo", "rain": 9}]
//	{"rows": [{"city": "Rome", "rain": 3}], "total": 1}        the array may have any name
//	{"columns": ["city", "rain"], "rows": [["Rome", 3]]}       a column may be an object with a name

// Bounds of a table. A result with more columns, or with columns that the terminal has no room for,
// is shown as it is.
const (
	mostColumns    = 16
	minColumnWidth = 6
	columnGap      = 2
)

// table is a table with the names of its columns as the first row, and the other members of the
// result.
type table struct {
	rows [][]string
	rest []string
}

// findTable returns the table that a text is.
func findTable(text string) (t table, ok bool) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '[' && raw[0] != '{' || !json.Valid(raw) {
		return t, false
	}
	if raw[0] == '[' {
		t.rows, ok = readObjects(raw)
		return t, ok
	}
	columns := rawjson.Lookup(raw, "columns")
	for it := rawjson.Object(raw); it.Next(); {
		switch value, isCell := readCell(it.Value); {
		case isCell:
			t.rest = append(t.rest, oneLine(string(it.Key))+": "+value)
		case columns != nil && string(it.Key) == "columns":
		case t.rows != nil: // two tables: the result is shown as it is
			return t, false
		case columns != nil && string(it.Key) == "rows":
			t.rows, ok = readGrid(columns, it.Value)
		default:
			t.rows, ok = readObjects(it.Value)
		}
	}
	return t, ok && t.rows != nil
}

// readObjects reads an array of objects. A column is a member that one of them has.
func readObjects(raw []byte) (rows [][]string, ok bool) {
	var columns []string
	var objects []map[string]string
	for it := rawjson.Array(raw); it.Next(); {
		if !rawjson.IsObject(it.Value) {
			return nil, false
		}
		object := map[string]string{}
		for member := rawjson.Object(it.Value); member.Next(); {
			name := string(member.Key)
			value, isCell := readCell(member.Value)
			if !isCell {
				return nil, false
			}
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
			object[name] = value
		}
		objects = append(objects, object)
	}
	if len(objects) == 0 || len(columns) == 0 || len(columns) > mostColumns {
		return nil, false
	}
	rows = append(rows, nil)
	for _, name := range columns {
		rows[0] = append(rows[0], oneLine(name))
	}
	for _, object := range objects {
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = object[name]
		}
		rows = append(rows, row)
	}
	return rows, true
}

// readGrid reads the names of columns, and rows with a cell for each.
func readGrid(columns, raw []byte) (rows [][]string, ok bool) {
	var names []string
	for it := rawjson.Array(columns); it.Next(); {
		value := it.Value
		if rawjson.IsObject(value) {
			value = rawjson.Lookup(value, "name")
		}
		name, ok := rawjson.String(value)
		if !ok {
			return nil, false
		}
		names = append(names, oneLine(name))
	}
	if len(names) == 0 || len(names) > mostColumns {
		return nil, false
	}
	rows = append(rows, names)
	for it := rawjson.Array(raw); it.Next(); {
		var row []string
		for cells := rawjson.Array(it.Value); cells.Next(); {
			value, isCell := readCell(cells.Value)
			if !isCell {
				return nil, false
			}
			row = append(row, value)
		}
		if len(row) != len(names) {
			return nil, false
		}
		rows = append(rows, row)
	}
	return rows, true
}

// readCell returns a string, number or boolean as text, and null as "". ok is false for other
// values.
func readCell(raw []byte) (text string, ok bool) {
	switch raw[0] {
	case '{', '[':
		return "", false
	case '"':
		text, ok = rawjson.String(raw)
		return oneLine(text), ok
	case 'n':
		return "", true
	}
	return string(raw), true
}

// tableLines returns at most most lines of a text that is a table, or nil if the text
// is another one or the terminal is too narrow.
func tableLines(text string, look transcript.Look, most int) (lines []string) {
	t, ok := findTable(text)
	if !ok {
		return nil
	}
	widths := fitColumns(term.ColumnWidths(t.rows), look.Width-4)
	if widths == nil {
		return nil
	}
	bar := look.Theme.Dim.Render("  │ ")
	last := len(widths) - 1
	for i, row := range t.rows {
		if len(lines) == most {
			return append(lines, look.Theme.Dim.Render("  … more; the model has the whole result"))
		}
		style := look.Theme.Dim
		if i == 0 {
			style = look.Theme.Bold
		}
		row = slices.Clone(row)
		row[last] = term.Shorten(row[last], widths[last])
		lines = append(lines, bar+style.Render(theme.Cut(term.LayOutRow(row, widths), look.Width-4)))
	}
	if len(t.rest) > 0 {
		lines = append(lines, bar+look.Theme.Dim.Render(theme.Cut(strings.Join(t.rest, ", "), look.Width-4)))
	}
	return lines
}

// fitColumns makes the widest columns narrower until all fit into width, or returns nil if they
// cannot.
func fitColumns(widths []int, width int) []int {
	total := columnGap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > width; total-- {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= minColumnWidth {
			return nil
		}
		widths[widest]--
	}
	return widths
}
