package toolcard

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// isHunkHead reports whether a line begins a part of a unified diff.
func isHunkHead(line string) bool {
	return strings.HasPrefix(line, "@@ -") && strings.Contains(line[4:], " @@")
}

// findChange returns the lines of the unified diff in a result, without heads and file names, or
// nil.
func findChange(result string) (lines []string) {
	result = result[:min(len(result), maxResultBytes)]
	isInside := false
	for line := range strings.SplitSeq(strings.TrimRight(result, "\n"), "\n") {
		switch {
		case isHunkHead(line):
			if lines != nil {
				lines = append(lines, "…")
			}
			isInside = true
		case !isInside:
		case line == "" || !strings.Contains(" +-\\", line[:1]):
			isInside = false
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

// changeLines returns the first lines of the change of a file.
func (c *Card) changeLines(change []string, look transcript.Look) (lines []string) {
	for i, line := range change {
		if i == mostChangeLines {
			return append(lines, look.Theme.Dim.Render(fmt.Sprintf("  … %d more lines: Ctrl-O shows them", len(change)-i)))
		}
		line = theme.Cut(theme.Clean(line), look.Width-4)
		lines = append(lines, look.Theme.Dim.Render("  │ ")+changeStyle(line, look.Theme.Dim, look.Theme).Render(line))
	}
	return lines
}

// changeStyle returns the style of a line of a unified diff, or other.
func changeStyle(line string, other lipgloss.Style, t *theme.Theme) lipgloss.Style {
	switch {
	case strings.HasPrefix(line, "+"):
		return t.Good
	case strings.HasPrefix(line, "-"):
		return t.Bad
	}
	return other
}
