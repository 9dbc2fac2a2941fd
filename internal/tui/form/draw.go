package form

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Lines returns the form in at most height lines, and the position of the cursor; x is -1
// without a cursor. The body is scrolled where it does not fit.
func (f *Form) Lines(width, height int, t *theme.Theme) (lines []string, x, y int) {
	x = -1
	inner := width - 2
	var fields []string
	for i := range f.Fields {
		if i == f.focus && f.Fields[i].Kind == Text {
			fields = append(fields, f.Fields[i].headLines(t, inner)...)
			line, at := f.Fields[i].textLine(t, inner)
			x, y = at+2, len(fields)
			fields = append(fields, line)
			fields = append(fields, f.Fields[i].problemLines(t, inner)...)
			continue
		}
		fields = append(fields, f.Fields[i].lines(t, inner, i == f.focus)...)
	}
	actions := f.actionLines(t, inner)
	head := theme.Wrap(t.Bold.Render(theme.KeepStyles(f.Title)), inner)
	hint := t.Dim.Render("Tab moves · Enter confirms · Esc " + f.Leave.About)
	room := max(height-len(head)-len(actions)-1, 3)
	if len(fields) > room-1 { // keep the focused line in view
		from := max(min(f.focusLine(t, inner, y)-room/2, len(fields)-room+1), 0)
		fields = fields[from:min(from+max(room-1, 1), len(fields))]
		y -= from
	}
	body := f.bodyLines(t, inner, max(room-len(fields), 1))
	y += len(head) + len(body)
	for _, part := range [][]string{head, body, fields, actions, {hint}} {
		lines = append(lines, part...)
	}
	bar := t.Accent.Render("▌") + " "
	for i := range lines {
		lines[i] = bar + theme.End(theme.Cut(lines[i], inner))
	}
	return lines, x, y
}

// focusLine returns the line of the focused field among the lines of the fields.
func (f *Form) focusLine(t *theme.Theme, width, y int) int {
	if y > 0 {
		return y
	}
	line := 0
	for i := range f.Fields {
		if i == f.focus {
			return line + f.Fields[i].cursor
		}
		line += len(f.Fields[i].lines(t, width, false))
	}
	return line
}

// bodyLines returns the visible lines of the body.
func (f *Form) bodyLines(t *theme.Theme, width, room int) []string {
	if strings.TrimSpace(f.Body) == "" {
		f.hidden = 0
		return nil
	}
	var all []string
	for line := range strings.SplitSeq(strings.Trim(theme.KeepStyles(f.Body), "\n"), "\n") {
		all = append(all, theme.Wrap(line, width)...)
	}
	f.hidden = 0
	if len(all) <= room {
		return all
	}
	room = max(room-1, 1)
	f.hidden, f.page = len(all)-room, room
	f.scroll = min(f.scroll, f.hidden)
	shown := append([]string{}, all[f.scroll:f.scroll+room]...)
	return append(shown, t.Warn.Render(fmt.Sprintf("lines %d-%d of %d: PgUp and PgDn show the others", f.scroll+1, f.scroll+room, len(all))))
}

func (f *Form) actionLines(t *theme.Theme, width int) (lines []string) {
	for i, action := range f.Actions {
		text := action.Key + "  " + action.About
		if action.Key == "" {
			text = action.About
		}
		if f.focus == len(f.Fields)+i {
			lines = append(lines, t.Selected.Render(theme.Cut("▸ "+text, width)))
			continue
		}
		lines = append(lines, "  "+text)
	}
	return lines
}

// lines returns the field with its choices.
func (f *Field) lines(t *theme.Theme, width int, isFocused bool) []string {
	lines := f.headLines(t, width)
	if f.Kind == Text {
		line, _ := f.textLine(t, width)
		return append(append(lines, line), f.problemLines(t, width)...)
	}
	marks := map[bool]string{true: "(•) ", false: "( ) "}
	if f.Kind == SomeOf {
		marks = map[bool]string{true: "[x] ", false: "[ ] "}
	}
	for i, choice := range f.Choices {
		text := theme.Cut(marks[f.Chosen[i]]+choice, width-4)
		if isFocused && i == f.cursor {
			text = t.Selected.Render(text)
		}
		lines = append(lines, "    "+text)
	}
	return append(lines, f.problemLines(t, width)...)
}

// headLines returns the label, and the description on lines of its own.
func (f *Field) headLines(t *theme.Theme, width int) (lines []string) {
	lines = append(lines, theme.Wrap(theme.KeepStyles(f.Label), width)...)
	if f.About != "" {
		for _, line := range theme.Wrap(theme.Clean(f.About), width-2) {
			lines = append(lines, t.Dim.Render("  "+line))
		}
	}
	return lines
}

// textLine returns the edited text around the cursor, and the cursor's column.
func (f *Field) textLine(t *theme.Theme, width int) (line string, cursor int) {
	const mark = "  > "
	room := max(width-len(mark)-1, 1)
	runes := []rune(f.Value)
	from := 0
	for theme.Width(string(runes[from:f.cursor])) > room {
		from++
	}
	shown := theme.Cut(string(runes[from:]), room)
	return t.Accent.Render(mark) + shown, len(mark) + theme.Width(string(runes[from:f.cursor]))
}

func (f *Field) problemLines(t *theme.Theme, width int) (lines []string) {
	if f.problem == "" {
		return nil
	}
	for _, line := range theme.Wrap(f.problem, width-4) {
		lines = append(lines, t.Warn.Render("    "+line))
	}
	return lines
}
