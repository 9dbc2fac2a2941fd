package edit

import (
	"strings"
)

// behindColon writes a value for a key at column.
func (t *yamlText) behindColon(v any, column int) string {
	if s, ok := t.inline(nil, v); ok {
		return " " + s
	}
	step := t.step
	if _, ok := v.([]any); ok {
		step = t.listStep
	}
	return t.newline + spaces(column+step) + t.lines(v, column+step)
}

// inline writes a value that goes into one line: a scalar, empty brackets, or a list of scalars where the file, or the old
// value, has them in brackets.
func (t *yamlText) inline(old *node, v any) (string, bool) {
	switch v := v.(type) {
	case Object:
		return "{}", len(v) == 0
	case []any:
		brackets := t.flowLists
		if old != nil && old.kind == list && len(old.items) > 0 {
			brackets = !old.block
		}
		return t.flow1(v), len(v) == 0 || brackets && scalars(v)
	case string:
		if old != nil && old.start < old.end {
			return yamlLike(t.text[old.start], v), true
		}
		return yamlString(v), true
	}
	return writeJSON(v), true
}

// lines writes a value whose first line begins at column, where the text already is.
func (t *yamlText) lines(v any, column int) string {
	var items []string
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, yamlString(m.Key)+":"+t.behindColon(m.Value, column))
		}
	case []any:
		for _, e := range v {
			items = append(items, "- "+t.compact(e, column+2))
		}
	}
	if len(items) == 0 {
		return t.flow1(v)
	}
	return strings.Join(items, t.newline+spaces(column))
}

// compact writes a value behind a dash, with its other lines at column.
func (t *yamlText) compact(v any, column int) string {
	if s, ok := t.inline(nil, v); ok {
		return s
	}
	if l, ok := v.([]any); ok {
		return t.flow1(l)
	}
	return t.lines(v, column)
}

// flow1 writes a value into one line.
func (t *yamlText) flow1(v any) string {
	var items []string
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, yamlString(m.Key)+": "+t.flow1(m.Value))
		}
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		for _, e := range v {
			items = append(items, t.flow1(e))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return yamlString(v)
	}
	return writeJSON(v)
}

// yamlLike writes a string in the quotes that the old one has, if it can.
func yamlLike(first byte, s string) string {
	switch {
	case first == '"':
		return quote(s)
	case first == '\'' && printable(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return yamlString(s)
}

func printable(s string) bool {
	for _, r := range s {
		if r < 0x20 || 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0xfe00 && r <= 0xffff {
			return false
		}
	}
	return true
}

// yamlWords are what some version of YAML does not take for a string.
const yamlWords = " true false yes no on off null nan inf y n "

// yamlString writes a string without quotes where that means the same in every version of YAML.
func yamlString(s string) string {
	if s == "" || strings.Contains(yamlWords, " "+strings.ToLower(s)+" ") {
		return quote(s)
	}
	first := s[0] | 0x20 // lower case
	path := s[0] == '/' || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
	if !(first >= 'a' && first <= 'z') && s[0] != '_' && !path {
		return quote(s)
	}
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./@+=~$%", c) >= 0 ||
			c == ':' && i+1 < len(s)
		if !plain {
			return quote(s)
		}
	}
	return s
}
