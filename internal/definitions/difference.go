package definitions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/rawjson"
)

// Bounds of a description of differences: lines, and bytes of one value in a line.
const (
	maxLines = 30
	maxValue = 1000
)

// Compare returns the differences between two definitions, one a line: "+ PATH: VALUE"
// for a new member, "- PATH: VALUE" for a removed one and "~ PATH: OLD → NEW" for another value.
// Values are JSON. A missing text is unknown.
func Compare(old, now json.RawMessage) []string {
	if old == nil || now == nil {
		return []string{"the accepted definition was not kept, so the differences are not known"}
	}
	var d difference
	d.compareValues("", withoutMeta(old), withoutMeta(now))
	if d.lines == nil || hasRepeatedMember(now) { // a member that occurs twice is compared once
		d.lines = append([]string{"a member that occurs more than once has changed"}, d.lines...)
	}
	if hidden := len(d.lines) - maxLines; hidden > 0 {
		d.lines = append(d.lines[:maxLines], fmt.Sprintf("and %d more differences", hidden))
	}
	return d.lines
}

// MayChangeHints reports whether the annotations of a tool may differ: a line is about them, or the
// lines are incomplete.
func MayChangeHints(c Change) bool {
	return len(c.Lines) > maxLines || slices.ContainsFunc(c.Lines, func(line string) bool {
		mark, path, _ := strings.Cut(line, " ")
		return !slices.Contains([]string{"+", "-", "~"}, mark) || strings.HasPrefix(path, "annotations")
	})
}

// hasRepeatedMember reports whether an object in the value has two members with one name.
func hasRepeatedMember(value json.RawMessage) bool {
	seen := map[string]bool{}
	for it := rawjson.Object(value); it.Next(); {
		key := string(it.Key)
		if seen[key] || hasRepeatedMember(it.Value) {
			return true
		}
		seen[key] = true
	}
	for it := rawjson.Array(value); it.Next(); {
		if hasRepeatedMember(it.Value) {
			return true
		}
	}
	return false
}

// difference collects lines.
type difference struct{ lines []string }

// compareValues compares two values at a path.
func (d *difference) compareValues(path string, old, now json.RawMessage) {
	switch {
	case sameValue(old, now):
	case rawjson.IsObject(old) && rawjson.IsObject(now):
		d.compareMembers(path, old, now)
	default:
		if path != "" {
			path += ": "
		}
		d.lines = append(d.lines, "~ "+path+describeReplacement(old, now))
	}
}

// compareMembers compares the members of two objects, in the order of the old one.
func (d *difference) compareMembers(path string, old, now json.RawMessage) {
	if path != "" {
		path += "."
	}
	for it := rawjson.Object(old); it.Next(); {
		key := string(it.Key)
		other := rawjson.Lookup(now, key)
		if other == nil {
			d.lines = append(d.lines, "- "+path+key+": "+cutValue(string(it.Value)))
			continue
		}
		d.compareValues(path+key, it.Value, other)
	}
	for it := rawjson.Object(now); it.Next(); {
		if key := string(it.Key); rawjson.Lookup(old, key) == nil {
			d.lines = append(d.lines, "+ "+path+key+": "+cutValue(string(it.Value)))
		}
	}
}

// sameValue reports whether two values are equal in canonical form.
func sameValue(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(rawjson.AppendCanonical(nil, a), rawjson.AppendCanonical(nil, b))
}

// describeReplacement returns "OLD → NEW". Of long texts it shows the part that differs.
func describeReplacement(old, now json.RawMessage) string {
	a, isText := rawjson.String(old)
	b, isTextToo := rawjson.String(now)
	if isText && isTextToo && len(a)+len(b) > maxValue {
		a, b = cutCommonParts(a, b)
		old, now = rawjson.AppendString(nil, a), rawjson.AppendString(nil, b)
	}
	return cutValue(string(old)) + " → " + cutValue(string(now))
}

// keptContext is how many common characters around a difference are shown.
const keptContext = 40

// cutCommonParts replaces the common head and tail of two texts by an ellipsis, except for some
// characters around the difference.
func cutCommonParts(a, b string) (string, string) {
	one, other := []rune(a), []rune(b)
	head := commonHead(one, other)
	slices.Reverse(one)
	slices.Reverse(other)
	tail := min(commonHead(one, other), len(one)-head, len(other)-head)
	slices.Reverse(one)
	slices.Reverse(other)
	head, tail = max(0, head-keptContext), max(0, tail-keptContext)
	cut := func(text []rune) string {
		out := string(text[head : len(text)-tail])
		if head > 0 {
			out = "…" + out
		}
		if tail > 0 {
			out += "…"
		}
		return out
	}
	return cut(one), cut(other)
}

// commonHead returns the number of equal characters at the beginning.
func commonHead(a, b []rune) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// cutValue cuts a long value, and says so.
func cutValue(text string) string {
	if len(text) <= maxValue {
		return text
	}
	end := maxValue
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimSpace(text[:end]) + fmt.Sprintf("… (%d more bytes)", len(text)-end)
}
