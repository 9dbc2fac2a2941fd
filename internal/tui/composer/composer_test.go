package composer

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

var keys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft},
	"ctrl+r": {Code: 'r', Mod: tea.ModCtrl}, "ctrl+j": {Code: 'j', Mod: tea.ModCtrl}, "backspace": {Code: tea.KeyBackspace}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
}

// press presses keys by their names and types other words. It returns the result of the last key.
func press(c *Composer, words ...string) (last Result) {
	for _, word := range words {
		if key, ok := keys[word]; ok {
			last = c.Press(key)
			continue
		}
		for _, r := range word {
			last = c.Press(tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return last
}

func newComposer(history ...string) *Composer {
	c := New()
	c.SetWidth(40)
	c.SetHistory(history)
	return c
}

func TestEditing(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []string
		want string
	}{
		"one line":      {[]string{"hello", "enter"}, "hello"},
		"several lines": {[]string{"a", "ctrl+j", "b", "alt+enter", "c", "enter"}, "a\nb\nc"},
		"backslash":     {[]string{"a\\", "enter", "b", "enter"}, "a\nb"},
		"in the middle": {[]string{"ac", "left", "b", "enter"}, "abc"},
	} {
		c := newComposer()
		if press(c, tt.keys...) != Sent || c.Take() != tt.want || !c.IsEmpty() {
			t.Errorf("%s failed", name)
		}
	}
	if c := newComposer(); press(c, "  ", "enter") != Edited {
		t.Error("blanks are sent")
	}
}

func TestHistory(t *testing.T) {
	c := newComposer("first", "second\nwith two lines", "third")
	press(c, "draft", "up")
	seen := []string{c.Text()}
	for _, key := range []string{"up", "up", "up", "up", "down", "down", "down"} {
		press(c, key)
		seen = append(seen, c.Text())
	}
	want := []string{"third", "second\nwith two lines", "second\nwith two lines", "first", "first", "second\nwith two lines", "third", "draft"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestSearch(t *testing.T) {
	c := newComposer("read the file", "write", "Read it again")
	press(c, "draft", "ctrl+r", "read")
	lines, _, _ := c.Lines(theme.New(true))
	if text := ansi.Strip(strings.Join(lines, "\n")); text != "search history: read\n  Read it again" {
		t.Errorf("got %q", text)
	}
	if press(c, "ctrl+r", "ctrl+r", "enter"); c.Text() != "read the file" {
		t.Errorf("got %q", c.Text())
	}
	if press(c, "ctrl+r", "x", "esc"); c.Text() != "read the file" {
		t.Errorf("Esc leaves %q", c.Text())
	}
}

func TestPaste(t *testing.T) {
	c := newComposer()
	c.Paste("two\r\nlines")
	if c.Text() != "two\nlines" {
		t.Errorf("got %q", c.Text())
	}
	c.Clear()
	long := strings.Repeat("a line\n", 500)
	press(c, "see ")
	c.Paste(long)
	press(c, "!")
	if lines, _, _ := c.Lines(theme.New(true)); len(lines) > 2 {
		t.Errorf("%d lines are shown", len(lines))
	}
	if got := c.Take(); got != "see "+long+"!" {
		t.Errorf("got %d bytes", len(got))
	}
}

// A late completion does not change what the user has typed since.
func TestLateCompletion(t *testing.T) {
	c := newComposer()
	press(c, "/sa")
	c.Complete("/s", 2, "/servers ", 9, nil)
	if c.Text() != "/sa" {
		t.Errorf("got %q", c.Text())
	}
	c.Complete("/sa", 3, "/save ", 6, nil)
	if draft, at := c.Draft(); draft != "/save " || at != 6 {
		t.Errorf("got %q, %d", draft, at)
	}
}
