package question

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/internal/term"
)

// replacement is a text and its replacement in the arguments of a tool that edits files.
type replacement struct {
	oldKey, newKey string
	lines          []argumentLine // of both texts
}

// Marks before the lines of a replacement.
const (
	keptMark    = "  "
	removedMark = "- "
	addedMark   = "+ "
)

// replacementKeys are the names that tools give to a text and its replacement.
var replacementKeys = [][2]string{{"old", "new"}, {"oldText", "newText"}, {"old_text", "new_text"}, {"old_string", "new_string"}, {"old_str", "new_str"}}

// findReplacement returns the replacement among the members of an object, if they are different
// texts.
func findReplacement(object json.RawMessage) (r replacement, ok bool) {
	var keys []string
	for it := rawjson.Object(object); it.Next(); {
		keys = append(keys, string(it.Key))
	}
	for _, names := range replacementKeys {
		before, isOld := rawjson.String(rawjson.Lookup(object, names[0]))
		after, isNew := rawjson.String(rawjson.Lookup(object, names[1]))
		isTwice := func(name string) bool {
			return slices.Contains(keys[slices.Index(keys, name)+1:], name)
		}
		if isOld && isNew && before != after && !isTwice(names[0]) && !isTwice(names[1]) {
			return replacement{names[0], names[1], compareTexts(before, after)}, true
		}
	}
	return r, false
}

// formatEdits formats a list of objects with a replacement each. ok is false for all other values.
func formatEdits(value json.RawMessage) (lines []argumentLine, ok bool) {
	for it := rawjson.Array(value); it.Next(); {
		r, ok := findReplacement(it.Value)
		if !ok {
			return nil, false
		}
		if lines != nil {
			lines = append(lines, argumentLine{text: "…"})
		}
		for _, line := range formatLines(it.Value) {
			if line.text == r.heading() {
				continue
			}
			line.text = strings.TrimPrefix(line.text, indent)
			lines = append(lines, line)
		}
	}
	return lines, lines != nil
}

// heading returns the line above a replacement.
func (r *replacement) heading() string { return r.oldKey + ", " + r.newKey + ":" }

// compareTexts returns the lines of two texts: "- " before removed ones, "+ " before added ones,
// and two spaces before those at the beginning and the end that both have.
func compareTexts(before, after string) (lines []argumentLine) {
	removed, added := splitLines(before), splitLines(after)
	if strings.HasSuffix(before, "\n") != strings.HasSuffix(after, "\n") {
		removed, added = markEnd(removed, before), markEnd(added, after)
	}
	head, tail := 0, 0
	for head < min(len(removed), len(added)) && removed[head] == added[head] {
		head++
	}
	for tail < min(len(removed), len(added))-head && removed[len(removed)-1-tail] == added[len(added)-1-tail] {
		tail++
	}
	for _, part := range []struct {
		mark  string
		lines []string
	}{{keptMark, removed[:head]}, {removedMark, removed[head : len(removed)-tail]}, {addedMark, added[head : len(added)-tail]}, {keptMark, removed[len(removed)-tail:]}} {
		for _, line := range part.lines {
			lines = append(lines, argumentLine{part.mark + term.Reveal(line), part.mark})
		}
	}
	return lines
}

// splitLines returns the lines of a text. An empty text has none.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// markEnd marks a text that does not end with a line break.
func markEnd(lines []string, text string) []string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return lines
	}
	return append(lines, `\ no line break at the end`)
}
