package screen

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/picture"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/dowel-mcp/dowel/internal/tui/transcript"
)

// View implements [tea.Model].
func (m *Model) View() tea.View {
	lower, x, y := m.lowerLines()
	height := max(m.height-len(lower), 0)
	m.Transcript.SetLook(transcript.Look{Width: m.width, Expanded: m.expanded, Pictures: m.pictures.showsPictures(), Opens: m.pictures.protocol() != picture.NoProtocol, Theme: m.theme})
	lines := m.Transcript.View(height)
	lines = append(lines[:len(lines):len(lines)], make([]string, height-len(lines))...)
	lines = append(lines, lower...)
	if extra := len(lines) - m.height; extra > 0 { // a very low terminal shows the input
		lines = lines[extra:]
	}
	for i := range lines {
		lines[i] = theme.Cut(lines[i], m.width)
	}
	view := tea.NewView(strings.Join(lines, "\n"))
	view.AltScreen = true
	if x >= 0 && y >= 0 {
		view.Cursor = tea.NewCursor(min(x, max(m.width-1, 0)), max(len(lines)-len(lower)+y, 0))
	}
	return view
}

// transcriptHeight returns the number of lines that the transcript has.
func (m *Model) transcriptHeight() int {
	lower, _, _ := m.lowerLines()
	return max(m.height-len(lower), 1)
}

// maxQueued limits the shown messages that wait.
const maxQueued = 3

// lowerLines returns the lines below the transcript, and the position of the cursor in them.
func (m *Model) lowerLines() (lines []string, x, y int) {
	if m.wire.isOpen {
		lines = append(lines, m.wire.lines(m.width, max(m.height/3, 3), m.theme)...)
	}
	lines = append(lines, m.ruleLine())
	for i, text := range m.queue {
		if i == maxQueued {
			lines = append(lines, m.theme.Dim.Render(fmt.Sprintf("  … %d more", len(m.queue)-i)))
			break
		}
		line := strings.Join(strings.Fields(theme.Clean(text)), " ")
		lines = append(lines, m.theme.Dim.Render(theme.Cut("queued: "+line, m.width)))
	}
	m.composer.SetWidth(m.width)
	switch {
	case m.form() != nil:
		form, formX, formY := m.form().Lines(m.width, max(m.height-6, m.height*2/3, 6), m.theme)
		x, y = formX, len(lines)+formY
		lines = append(lines, form...)
	default:
		if m.isAsideAsk {
			lines = append(lines, m.theme.Warn.Render(theme.Cut("A question waits: press Tab to answer it, or send this first.", m.width)))
		}
		lines = append(lines, m.composer.ChoiceLines(m.theme)...)
		input, inputX, inputY := m.composer.Lines(m.theme)
		x, y = inputX, len(lines)+inputY
		lines = append(lines, input...)
	}
	return append(lines, m.status.Line(m.width, m.theme)), x, y
}

// ruleLine separates the transcript from the input, and tells that the end is out of view.
func (m *Model) ruleLine() string {
	label := ""
	if m.Transcript.IsScrolled() {
		label = " PgDn: newer messages · Esc: the end "
	}
	label = theme.Cut(label, m.width)
	return m.theme.Dim.Render(strings.Repeat("─", max(m.width-theme.Width(label), 0)) + label)
}
