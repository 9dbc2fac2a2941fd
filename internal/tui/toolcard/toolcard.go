// Package toolcard shows a call of a tool: one line while it is folded, and its arguments and
// result when it is expanded.
package toolcard

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// State is the state of a call.
type State int

// The states of calls.
const (
	Running State = iota
	Succeeded
	Failed
	Refused
)

// Card is a call. Text in it may be foreign. Call Touch after a change of a field.
type Card struct {
	Tool      string   // display name
	Brief     string   // the arguments on one line
	Arguments []string // the arguments in full, line by line
	State     State
	Progress  string
	Elapsed   time.Duration // while it runs, in whole seconds
	Facts     string        // of an ended call: time and size, or why it did not run
	Result    string
	Pictures  []Picture // in the result

	version int
}

// Touch marks the card as changed.
func (c *Card) Touch() { c.version++ }

// Version implements [transcript.Item].
func (c *Card) Version() int { return c.version }

// Bounds of an expanded card. The model gets the whole result.
const (
	maxArgumentLines = 200
	maxResultLines   = 500
	maxResultBytes   = 256 << 10
	errorLines       = 3  // of a failed call that is folded
	mostChangeLines  = 12 // of a change of a file that is folded
)

// Lines implements [transcript.Item].
func (c *Card) Lines(look transcript.Look) []string {
	lines := []string{c.headLine(look)}
	switch {
	case look.Expanded:
		for i, text := range c.Arguments {
			if i == maxArgumentLines {
				lines = append(lines, look.Theme.Dim.Render(fmt.Sprintf("  … %d more lines", len(c.Arguments)-i)))
				break
			}
			lines = append(lines, indentText(text, "  ", look)...)
		}
		return append(append(lines, c.resultLines(look, maxResultLines)...), c.pictureLines(look)...)
	case c.State == Failed:
		return append(lines, c.resultLines(look, errorLines)...)
	case c.State == Succeeded:
		return append(append(lines, c.changeLines(findChange(c.Result), look)...), c.pictureLines(look)...)
	}
	return lines
}

// headLine returns the line of a folded card: mark, tool, arguments, and time and size.
func (c *Card) headLine(look transcript.Look) string {
	t := look.Theme
	mark, facts := t.Accent.Render("●"), c.Facts
	switch c.State {
	case Succeeded:
		mark = t.Good.Render("✓")
	case Failed:
		mark = t.Bad.Render("✗")
	case Refused:
		mark = t.Warn.Render("–")
	case Running:
		facts = strings.TrimSpace(c.Progress)
		if c.Elapsed > 0 {
			facts = strings.TrimSpace(c.Elapsed.String() + " " + facts)
		}
		if facts == "" {
			facts = "running"
		}
	}
	fold := "▸"
	if look.Expanded {
		fold = "▾"
	}
	head := mark + " " + t.Dim.Render(fold) + " " + t.Bold.Render(oneLine(c.Tool))
	tail := " " + t.Dim.Render("· "+oneLine(facts))
	tail = theme.Cut(tail, max(look.Width-theme.Width(head), look.Width/2))
	room := look.Width - theme.Width(head) - theme.Width(tail) - 1
	if brief := oneLine(c.Brief); brief != "" && room > 3 {
		head += " " + t.Code.Render(theme.Cut(brief, room))
	}
	return theme.Cut(head+tail, look.Width)
}

func oneLine(text string) string { return strings.Join(strings.Fields(theme.Clean(text)), " ") }

// resultLines returns the first lines of the result.
func (c *Card) resultLines(look transcript.Look, most int) (lines []string) {
	text, isCut := c.Result, false
	if len(text) > maxResultBytes {
		text, isCut = strings.ToValidUTF8(text[:maxResultBytes], ""), true
	}
	style := look.Theme.Dim
	if c.State == Failed {
		style = look.Theme.Bad
	}
	rest := strings.TrimRight(theme.Clean(text), "\n")
	isChange := false
	if !isCut && c.State == Succeeded {
		if table := tableLines(rest, look, most); table != nil {
			return table
		}
	}
	for rest != "" {
		line, more, _ := strings.Cut(rest, "\n")
		if c.State == Succeeded {
			if table := tableLines(line, look, most-len(lines)); table != nil {
				lines, rest = append(lines, table...), more
				continue
			}
		}
		isChange = isHunkHead(line) || isChange && line != ""
		style := style
		if isChange {
			style = changeStyle(line, style, look.Theme)
		}
		for _, part := range theme.Break(line, look.Width-4) {
			if len(lines) == most {
				return append(lines, look.Theme.Dim.Render("  … more; the model has the whole result"))
			}
			lines = append(lines, look.Theme.Dim.Render("  │ ")+style.Render(part))
		}
		rest = more
	}
	if isCut {
		lines = append(lines, look.Theme.Dim.Render("  … more; the model has the whole result"))
	}
	return lines
}

// indentText wraps one line of foreign text.
func indentText(text, margin string, look transcript.Look) (lines []string) {
	for _, part := range theme.Break(oneLineKeepingSpaces(text), look.Width-len(margin)) {
		lines = append(lines, margin+look.Theme.Code.Render(part))
	}
	return lines
}

func oneLineKeepingSpaces(text string) string {
	return strings.ReplaceAll(theme.Clean(text), "\n", " ")
}
