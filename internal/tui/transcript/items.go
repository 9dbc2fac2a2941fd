package transcript

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/dowel-mcp/dowel/internal/tui/markdown"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// User is a message of the user. A long one is folded to its beginning unless the look is expanded.
type User struct{ Text string }

const (
	maxUserRows   = 12 // a longer message is folded,
	foldedRows    = 10 // and this much of it is shown
	maxFoldedText = 32 << 10
)

// Lines implements [Item].
func (u *User) Lines(look Look) (lines []string) {
	text, isCut := u.Text, false
	if !look.Expanded && len(text) > maxFoldedText {
		text, isCut = text[:maxFoldedText], true // the rest is neither cleaned nor wrapped
	}
	mark := look.Theme.Accent.Bold(true).Render("›") + " "
	for line := range strings.SplitSeq(theme.Clean(text), "\n") {
		for _, part := range theme.Wrap(look.Theme.Bold.Render(line), look.Width-2) {
			lines = append(lines, mark+part)
			mark = "  "
		}
	}
	if look.Expanded || len(lines) <= maxUserRows && !isCut {
		return lines
	}
	size := fmt.Sprintf("%d lines", strings.Count(u.Text, "\n")+1)
	if !strings.Contains(u.Text, "\n") {
		size = fmt.Sprintf("%d characters", utf8.RuneCountInString(u.Text))
	}
	more := look.Theme.Dim.Render(theme.Cut("  … "+size+" in all; Ctrl-O shows them", look.Width))
	return append(lines[:min(foldedRows, len(lines))], more)
}

// Version implements [Item].
func (u *User) Version() int { return 0 }

// Reply is an answer of the model, which arrives in pieces.
type Reply struct {
	markdown.Stream
	version int
}

// Append adds a piece.
func (r *Reply) Append(piece string) {
	r.Stream.Append(piece)
	r.version++
}

// Lines implements [Item].
func (r *Reply) Lines(look Look) []string { return r.Stream.Lines(look.Width, look.Theme) }

// Version implements [Item].
func (r *Reply) Version() int { return r.version }

// Thought is the reasoning of the model. It is folded to one line unless the look is expanded.
type Thought struct {
	text    strings.Builder
	version int
	isDone  bool
}

// maxThought limits the shown part of a thought, in bytes.
const maxThought = 64 << 10

// Append adds a piece.
func (t *Thought) Append(piece string) {
	t.text.WriteString(piece)
	t.version++
}

// Finish marks the thought as complete.
func (t *Thought) Finish() { t.isDone, t.version = true, t.version+1 }

// Lines implements [Item].
func (t *Thought) Lines(look Look) (lines []string) {
	label := "thinking"
	if t.isDone {
		label = "thought"
	}
	text := t.text.String()
	text = text[max(len(text)-maxThought, 0):]
	if !look.Expanded {
		text = text[max(len(text)-4*look.Width, 0):]
		tail := strings.Join(strings.Fields(theme.Clean(text)), " ")
		room := look.Width - theme.Width(label) - 5
		if n := theme.Width(tail) - room; n > 0 {
			tail = "…" + cutStart(tail, n+1)
		}
		return []string{theme.Cut(look.Theme.Dim.Render("▸ "+label+": "+tail), look.Width)}
	}
	for _, part := range theme.Wrap(theme.Clean(text), look.Width-2) {
		lines = append(lines, look.Theme.Dim.Render("  "+part))
	}
	return append([]string{look.Theme.Dim.Render("▾ " + label)}, lines...)
}

// cutStart removes at least n columns from the start of a text.
func cutStart(text string, n int) string {
	for i := range text {
		if theme.Width(text[:i]) >= n {
			return text[i:]
		}
	}
	return ""
}

// Version implements [Item].
func (t *Thought) Version() int { return t.version }

// Kind says how a notice looks.
type Kind int

// The kinds of notices.
const (
	Info Kind = iota
	Warning
	Trouble
)

// Notice is a remark of the program about the conversation.
type Notice struct {
	Kind Kind
	Text string
}

// Lines implements [Item].
func (n *Notice) Lines(look Look) (lines []string) {
	style, mark := look.Theme.Dim, "· "
	switch n.Kind {
	case Info:
	case Warning:
		style, mark = look.Theme.Warn, "! "
	case Trouble:
		style, mark = look.Theme.Bad, "✗ "
	}
	return indentStyled(theme.Clean(n.Text), mark, style, look.Width)
}

func indentStyled(text, mark string, style lipgloss.Style, width int) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		for _, part := range theme.Wrap(line, width-2) {
			lines = append(lines, style.Render(mark+part))
			mark = "  "
		}
	}
	return lines
}

// Version implements [Item].
func (n *Notice) Version() int { return 0 }

// Output is styled output of a command of the program. Only its styles reach the terminal.
type Output struct {
	text    string
	version int
}

// Append adds output.
func (o *Output) Append(text string) {
	o.text += theme.KeepStyles(text)
	o.version++
}

// Lines implements [Item].
func (o *Output) Lines(look Look) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(o.text, "\n"), "\n") {
		for _, part := range theme.Wrap(line, look.Width) {
			lines = append(lines, theme.End(part))
		}
	}
	return lines
}

// Version implements [Item].
func (o *Output) Version() int { return o.version }
