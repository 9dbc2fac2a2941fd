// Package theme holds the styles of the screen, for dark and for light terminals. It uses the
// terminal's own sixteen colours, which the user has chosen to be readable. The program drops the
// colours where the terminal or NO_COLOR forbids them.
package theme

import (
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/term"
)

// Theme is a set of styles. Make one with [New].
type Theme struct {
	IsDark bool

	Plain, Bold, Italic, Strike, Dim lipgloss.Style
	Accent                           lipgloss.Style // marks and keys
	Good, Warn, Bad                  lipgloss.Style
	Heading, Code, Link, Selected    lipgloss.Style
	Name                             lipgloss.Style // in code
}

// New returns the styles for a dark or a light background.
func New(isDark bool) *Theme {
	plain := lipgloss.NewStyle()
	paint := func(dark, light string) lipgloss.Style {
		return plain.Foreground(lipgloss.LightDark(isDark)(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	return &Theme{
		IsDark: isDark,
		Plain:  plain, Bold: plain.Bold(true), Italic: plain.Italic(true), Strike: plain.Strikethrough(true).StrikethroughSpaces(true), Dim: plain.Faint(true),
		Accent: paint("14", "4"),
		Good:   paint("10", "2"), Warn: paint("11", "3"), Bad: paint("9", "1"),
		Heading: paint("14", "4").Bold(true), Code: paint("13", "5"), Link: paint("12", "4").Underline(true).UnderlineSpaces(true),
		Selected: plain.Reverse(true), Name: paint("12", "4"),
	}
}

// Wrap breaks text into lines of at most width columns, and keeps its styles.
func Wrap(text string, width int) []string {
	return strings.Split(lipgloss.Wrap(text, max(width, 1), ""), "\n")
}

// Cut shortens a styled line to width columns.
func Cut(line string, width int) string { return ansi.Truncate(line, max(width, 0), "…") }

// Width returns the columns of a styled line.
func Width(line string) int { return ansi.StringWidth(line) }

// Clean makes foreign text fit to be shown: without control characters, and with spaces for tabs.
func Clean(text string) string {
	return strings.ReplaceAll(term.Printable(text), "\t", "    ")
}

// KeepStyles removes all control sequences and characters from the program's own output, except
// styles (SGR) and line breaks.
func KeepStyles(text string) string {
	var kept strings.Builder
	state, parser := byte(0), ansi.NewParser()
	for text != "" {
		sequence, width, n, next := ansi.DecodeSequence(text, state, parser)
		switch {
		case width > 0, sequence == "\n":
			kept.WriteString(sequence)
		case sequence == "\t":
			kept.WriteString("    ")
		case ansi.HasCsiPrefix(sequence) && parser.Command() == 'm' && strings.HasPrefix(sequence, "\x1b["):
			kept.WriteString(sequence)
		}
		text, state = text[n:], next
	}
	return kept.String()
}

// End ends the styles of a line, so that they do not reach the next one.
func End(line string) string {
	if strings.Contains(line, "\x1b") {
		return line + ansi.ResetStyle
	}
	return line
}

// Break cuts a line without styles into parts of at most width columns. An empty line is one part.
func Break(line string, width int) (parts []string) {
	width = max(width, 1)
	for {
		head := firstBytes(line, 16*width) // so that a long line is looked at once
		if len(head) == len(line) && Width(line) <= width {
			return append(parts, line)
		}
		part := ansi.Truncate(head, width, "")
		if part == "" {
			part = head
		}
		parts, line = append(parts, part), line[len(part):]
	}
}

// firstBytes returns at most n bytes of a text, in whole characters.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
