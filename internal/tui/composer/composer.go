// Package composer is the input of the screen: several lines with history, search, completion and
// paste.
package composer

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Composer edits a message. Make one with [New].
type Composer struct {
	area    textarea.Model
	history history
	search  *search // nil unless the user searches
	pastes  []paste
	width   int

	choices []string // possible completions
}

// paste is a long pasted text. The edited text holds a mark instead.
type paste struct{ mark, text string }

// A paste longer than one of these is shown as a mark.
const (
	maxPasteLines = 8
	maxPasteBytes = 1000
)

// maxRows limits the height of the input.
const maxRows = 8

// New returns an empty composer.
func New() *Composer {
	area := textarea.New()
	area.ShowLineNumbers, area.Prompt, area.CharLimit = false, "", 0
	area.DynamicHeight, area.MinHeight, area.MaxHeight, area.MaxContentHeight = true, 1, maxRows, 10_000
	area.SetVirtualCursor(false)
	area.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	area.KeyMap.DeleteCharacterForward = key.NewBinding(key.WithKeys("delete", "ctrl+d"))
	area.KeyMap.Paste.SetEnabled(false) // the terminal pastes; a library must not run programs for it
	area.SetStyles(textarea.Styles{})
	area.Focus()
	return &Composer{area: area}
}

// SetWidth changes the width.
func (c *Composer) SetWidth(width int) {
	if c.width == width {
		return
	}
	c.width = width
	c.area.SetWidth(max(width-2, 1))
}

// SetHistory sets the earlier messages, the oldest first.
func (c *Composer) SetHistory(all []string) { c.history.replace(all) }

// Text returns the message, with its pasted texts.
func (c *Composer) Text() string {
	text := c.area.Value()
	for _, p := range c.pastes {
		text = strings.Replace(text, p.mark, p.text, 1)
	}
	return text
}

// Draft returns the text before the cursor and behind it, as it is edited.
func (c *Composer) Draft() (text string, at int) {
	lines := strings.SplitAfter(c.area.Value(), "\n")
	for i, line := range lines {
		if i == c.area.Line() {
			column := c.area.Column()
			for j := range line {
				if column == 0 {
					return c.area.Value(), at + j
				}
				column--
			}
			return c.area.Value(), at + len(strings.TrimSuffix(line, "\n"))
		}
		at += len(line)
	}
	return c.area.Value(), at
}

// IsEmpty reports whether nothing is written.
func (c *Composer) IsEmpty() bool { return c.area.Value() == "" && c.search == nil }

// Take returns the message and empties the composer. The message becomes part of the history.
func (c *Composer) Take() string {
	text := c.Text()
	c.history.addMessage(text)
	c.Clear()
	return text
}

// Clear empties the composer.
func (c *Composer) Clear() {
	c.pastes, c.choices = nil, nil
	c.history.leave()
	c.area.Reset()
}

// Replace replaces the message by another text.
func (c *Composer) Replace(text string) {
	c.Clear()
	c.setText(theme.Clean(strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\r\n", "\n")))
}

// IsSearching reports whether the user searches the history.
func (c *Composer) IsSearching() bool { return c.search != nil }

// setText replaces the text and moves the cursor to the end.
func (c *Composer) setText(text string) {
	c.area.SetValue(text)
	c.area.MoveToEnd()
}

// Complete applies a completion of a draft, unless the user has typed on.
func (c *Composer) Complete(draft string, at int, longer string, to int, choices []string) {
	if text, cursor := c.Draft(); text != draft || cursor != at {
		return
	}
	c.choices = nil
	if len(choices) > 1 {
		c.choices = choices
	}
	if longer == draft {
		return
	}
	c.area.SetValue(longer[:to])
	c.area.MoveToEnd()
	if rest := longer[to:]; rest != "" {
		line, column := c.area.Line(), c.area.Column()
		c.area.InsertString(rest)
		for c.area.Line() > line {
			c.area.CursorUp()
		}
		c.area.SetCursorColumn(column)
	}
}

// Result says what a key has done.
type Result int

// The results of keys.
const (
	Ignored Result = iota // the caller may use the key
	Edited
	Sent // Take has the message
)

// Press handles a key.
func (c *Composer) Press(press tea.KeyPressMsg) Result {
	if c.search != nil {
		return c.pressInSearch(press)
	}
	switch press.String() {
	case "enter":
		return c.pressEnter()
	case "ctrl+r":
		c.search = &search{draft: c.area.Value()}
		return Edited
	case "up":
		if c.area.Line() == 0 && c.area.LineInfo().RowOffset == 0 {
			return c.recall(c.history.older(c.area.Value()))
		}
	case "down":
		if c.area.Line() == c.area.LineCount()-1 && c.area.LineInfo().RowOffset >= c.area.LineInfo().Height-1 {
			return c.recall(c.history.newer())
		}
	case "ctrl+d":
		if c.area.Value() == "" {
			return Ignored
		}
	case "tab", "esc", "ctrl+c", "pgup", "pgdown", "ctrl+home", "ctrl+end":
		return Ignored
	}
	before := c.area.Value()
	c.area, _ = c.area.Update(press)
	if c.area.Value() != before {
		c.choices = nil
	}
	return Edited
}

// pressEnter sends the message, or continues it on the next line after \.
func (c *Composer) pressEnter() Result {
	text, at := c.Draft()
	if at > 0 && text[at-1] == '\\' {
		c.area, _ = c.area.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
		c.area.InsertString("\n")
		return Edited
	}
	if strings.TrimSpace(text) == "" {
		return Edited
	}
	return Sent
}

func (c *Composer) recall(text string, ok bool) Result {
	if ok {
		c.setText(text)
	}
	return Edited
}

// Paste inserts pasted text. A long text is shown as a mark.
func (c *Composer) Paste(text string) {
	c.search, c.choices = nil, nil
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Count(text, "\n") + 1
	if lines <= maxPasteLines && len(text) <= maxPasteBytes {
		c.area.InsertString(theme.Clean(text))
		return
	}
	p := paste{mark: fmt.Sprintf("[pasted text %d: %d lines]", len(c.pastes)+1, lines), text: text}
	c.pastes = append(c.pastes, p)
	c.area.InsertString(p.mark)
}

// Lines returns the lines of the composer, and the position of the cursor in them.
func (c *Composer) Lines(t *theme.Theme) (lines []string, x, y int) {
	if c.search != nil {
		return c.searchLines(t)
	}
	if cursor := c.area.Cursor(); cursor != nil && (cursor.Y < 0 || cursor.Y >= c.area.Height()) {
		c.area, _ = c.area.Update(nil) // scrolls to the cursor, which a text or another width has moved
	}
	mark := t.Accent.Bold(true).Render("›") + " "
	for line := range strings.SplitSeq(c.area.View(), "\n") {
		lines = append(lines, theme.Cut(mark+strings.TrimRight(line, " "), c.width))
		mark = "  "
	}
	if cursor := c.area.Cursor(); cursor != nil {
		x, y = cursor.X+2, min(max(cursor.Y, 0), len(lines)-1)
	}
	return lines, x, y
}

// maxChoices limits the shown completions.
const maxChoices = 6

// ChoiceLines returns the possible completions as lines.
func (c *Composer) ChoiceLines(t *theme.Theme) (lines []string) {
	for i, choice := range c.choices {
		if i == maxChoices {
			lines = append(lines, t.Dim.Render(fmt.Sprintf("  … %d more", len(c.choices)-i)))
			break
		}
		lines = append(lines, theme.Cut("  "+t.Accent.Render(theme.Clean(choice)), c.width))
	}
	return lines
}

// HideChoices hides the completions, and reports whether there were some.
func (c *Composer) HideChoices() bool {
	had := c.choices != nil
	c.choices = nil
	return had
}
