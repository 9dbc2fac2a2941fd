package edit

import (
	"strings"
)

// writeAfterColon formats the value of a key at column.
func (t *yamlText) writeAfterColon(v any, column int) string {
	if s, ok := t.writeInline(nil, v); ok {
		return " " + s
	}
	step := t.step
	if _, ok := v.([]any); ok {
		step = t.listStep
	}
	return t.newline + repeatSpace(column+step) + t.writeLines(v, column+step)
}

// writeInline formats a value for one line. ok is true for scalars, empty brackets, and lists of
// scalars if the file, or the old value, has them in brackets.
func (t *yamlText) writeInline(old *node, v any) (string, bool) {
	switch v := v.(type) {
	case Object:
		return "{}", len(v) == 0
	case []any:
		brackets := t.flowLists
		if old != nil && old.kind == list && len(old.items) > 0 {
			brackets = !old.block
		}
		return t.writeFlow(v), len(v) == 0 || brackets && onlyScalars(v)
	case string:
		if old != nil && old.start < old.end {
			return yamlLike(t.text[old.start], v), true
		}
		return yamlString(v), true
	}
	return writeJSON(v), true
}

// writeLines formats a value on lines of its own. The first line begins at column, the current
// position.
func (t *yamlText) writeLines(v any, column int) string {
	var items []string
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, yamlString(m.Key)+":"+t.writeAfterColon(m.Value, column))
		}
	case []any:
		for _, e := range v {
			items = append(items, "- "+t.writeAfterDash(e, column+2))
		}
	}
	if len(items) == 0 {
		return t.writeFlow(v)
	}
	return strings.Join(items, t.newline+repeatSpace(column))
}

// writeAfterDash formats a list entry. Its further lines begin at column.
func (t *yamlText) writeAfterDash(v any, column int) string {
	if s, ok := t.writeInline(nil, v); ok {
		return s
	}
	if l, ok := v.([]any); ok {
		return t.writeFlow(l)
	}
	return t.writeLines(v, column)
}

// writeFlow formats a value on one line.
func (t *yamlText) writeFlow(v any) string {
	var items []string
	switch v := v.(type) {
	case Object:
		for _, m := range v {
			items = append(items, yamlString(m.Key)+": "+t.writeFlow(m.Value))
		}
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		for _, e := range v {
			items = append(items, t.writeFlow(e))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return yamlString(v)
	}
	return writeJSON(v)
}

// yamlLike formats a string in the quotes of the old value, if possible.
func yamlLike(first byte, s string) string {
	switch {
	case first == '"':
		return quoteString(s)
	case first == '\'' && isPrintable(s):
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return yamlString(s)
}

// isPrintable reports whether s is allowed in single quotes, which know no escapes.
func isPrintable(s string) bool {
	for _, r := range s {
		if r < 0x20 || 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0xfe00 && r <= 0xffff {
			return false
		}
	}
	return true
}

// yamlWords are strings that some YAML version reads as another type.
const yamlWords = " true false yes no on off null nan inf y n "

// yamlString formats a string, without quotes if all YAML versions then read the same string.
func yamlString(s string) string {
	if s == "" || strings.Contains(yamlWords, " "+strings.ToLower(s)+" ") {
		return quoteString(s)
	}
	first := s[0] | 0x20 // in lower case
	path := s[0] == '/' || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
	if !(first >= 'a' && first <= 'z') && s[0] != '_' && !path {
		return quoteString(s)
	}
	for i := range len(s) {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-./@+=~$%", c) >= 0 ||
			c == ':' && i+1 < len(s)
		if !plain {
			return quoteString(s)
		}
	}
	return s
}
