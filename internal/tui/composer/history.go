package composer

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// history is the earlier messages, the oldest first.
type history struct {
	all   []string
	back  int    // how far the user has gone back; 0 means the draft
	draft string // what the user wrote before going back
}

// replace sets the messages of earlier sessions. Messages of this session stay behind them.
func (h *history) replace(all []string) {
	own := h.all
	h.all, h.back = nil, 0
	for _, text := range slices.Concat(all, own) {
		h.addMessage(text)
	}
}

func (h *history) addMessage(text string) {
	h.leave()
	if text = strings.TrimRight(text, "\n "); text != "" && (len(h.all) == 0 || h.all[len(h.all)-1] != text) {
		h.all = append(h.all, text)
	}
}

// leave ends the walk through the history.
func (h *history) leave() { h.back, h.draft = 0, "" }

func (h *history) older(current string) (text string, ok bool) {
	if h.back == len(h.all) {
		return "", false
	}
	if h.back == 0 {
		h.draft = current
	}
	h.back++
	return h.all[len(h.all)-h.back], true
}

func (h *history) newer() (text string, ok bool) {
	if h.back == 0 {
		return "", false
	}
	if h.back--; h.back == 0 {
		return h.draft, true
	}
	return h.all[len(h.all)-h.back], true
}

// search is a search in the history.
type search struct {
	words string
	skip  int    // how many newer matches the user has passed
	draft string // what the user wrote before
}

// findMessage returns the newest message that contains the words, ignoring case,
// behind skip others.
func (h *history) findMessage(words string, skip int) (text string, ok bool) {
	words = strings.ToLower(words)
	for _, text := range slices.Backward(h.all) {
		if !strings.Contains(strings.ToLower(text), words) {
			continue
		}
		if skip == 0 {
			return text, true
		}
		skip--
	}
	return "", false
}

// pressInSearch handles a key while the user searches.
func (c *Composer) pressInSearch(press tea.KeyPressMsg) Result {
	s := c.search
	found, ok := c.history.findMessage(s.words, s.skip)
	switch name := press.String(); {
	case name == "esc" || name == "ctrl+c" || name == "ctrl+g":
		c.search = nil
		c.setText(s.draft)
	case name == "ctrl+r":
		if _, more := c.history.findMessage(s.words, s.skip+1); more {
			s.skip++
		}
	case name == "enter" || name == "tab" || name == "right":
		c.search = nil
		if ok {
			c.setText(found)
		}
	case name == "backspace":
		runes := []rune(s.words)
		s.words, s.skip = string(runes[:max(len(runes)-1, 0)]), 0
	case press.Text != "":
		s.words, s.skip = s.words+press.Text, 0
	}
	return Edited
}

// searchLines returns the composer's lines while the user searches.
func (c *Composer) searchLines(t *theme.Theme) (lines []string, x, y int) {
	head := t.Accent.Render("search history:") + " " + theme.Clean(c.search.words)
	lines = []string{theme.Cut(head, c.width)}
	found, ok := c.history.findMessage(c.search.words, c.search.skip)
	if !ok {
		return append(lines, t.Dim.Render("  nothing found")), min(theme.Width(head), c.width-1), 0
	}
	for line := range strings.SplitSeq(theme.Clean(found), "\n") {
		if len(lines) == maxRows {
			break
		}
		lines = append(lines, theme.Cut("  "+line, c.width))
	}
	return lines, min(theme.Width(head), c.width-1), 0
}
