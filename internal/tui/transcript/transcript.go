// Package transcript is the scrolling part of the screen: the messages, calls and notices of a
// conversation. It draws visible lines only, however long the conversation is, and keeps what it
// has drawn.
package transcript

import (
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Item is an entry of a transcript.
type Item interface {
	// Lines returns the item's lines, each at most look.Width columns wide.
	Lines(look Look) []string
	// Version changes when Lines would return something else for the same look.
	Version() int
}

// Look is everything that the lines of an item depend on besides the item.
type Look struct {
	Width    int
	Expanded bool // show results and thoughts whole
	Pictures bool // the terminal shows images among the text
	Opens    bool // the terminal shows an image alone
	Theme    *theme.Theme
}

// Transcript is a list of items and a position in it. The zero value is empty and shows its end.
type Transcript struct {
	// Drawn counts the calls of Item.Lines, for tests.
	Drawn int

	entries []entry
	look    Look

	isScrolled bool // top counts; otherwise the end is shown
	top        position
}

// entry is an item with its lines in a look.
type entry struct {
	item    Item
	lines   []string
	look    Look
	version int
}

// position is a line of an item.
type position struct{ item, line int }

// Append adds an item at the end.
func (t *Transcript) Append(item Item) { t.entries = append(t.entries, entry{item: item}) }

// Len returns the number of items.
func (t *Transcript) Len() int { return len(t.entries) }

// SetLook changes how items are drawn. The first visible item stays the first one.
func (t *Transcript) SetLook(look Look) {
	if look != t.look {
		t.look, t.top.line = look, 0
	}
}

// lines returns the lines of an item, with a blank line before it unless it is the first one.
func (t *Transcript) lines(i int) []string {
	e := &t.entries[i]
	if e.lines == nil || e.look != t.look || e.version != e.item.Version() {
		t.Drawn++
		e.look, e.version = t.look, e.item.Version()
		e.lines = append(e.lines[:0:0], e.item.Lines(t.look)...)
		if i > 0 && len(e.lines) > 0 {
			e.lines = append([]string{""}, e.lines...)
		}
	}
	return e.lines
}

// View returns the visible lines, at most height.
func (t *Transcript) View(height int) []string {
	if t.isScrolled {
		if visible := t.linesFrom(t.top, height); len(visible) == height {
			return visible
		}
		t.isScrolled = false
	}
	return t.linesFrom(t.lastTop(height), height)
}

// linesFrom returns at most height lines from a position on.
func (t *Transcript) linesFrom(at position, height int) (visible []string) {
	for i := at.item; i < len(t.entries) && len(visible) < height; i++ {
		lines := t.lines(i)
		if i == at.item {
			lines = lines[min(at.line, len(lines)):]
		}
		visible = append(visible, lines[:min(len(lines), height-len(visible))]...)
	}
	return visible
}

// lastTop returns the position of the first line when the end is shown.
func (t *Transcript) lastTop(height int) position {
	return t.moveUp(position{item: len(t.entries)}, height)
}

// moveUp returns the position that is n lines above another one, or the start.
func (t *Transcript) moveUp(at position, n int) position {
	for n > at.line {
		n -= at.line
		if at.item == 0 {
			return position{}
		}
		at.item--
		at.line = len(t.lines(at.item))
	}
	at.line -= n
	return at
}

// Scroll moves the view by n lines, up if n is negative. At the end the view follows new items.
func (t *Transcript) Scroll(n, height int) {
	end := t.lastTop(height)
	at := end
	if t.isScrolled {
		at = t.top
	}
	if n < 0 {
		at = t.moveUp(at, -n)
	}
	for ; n > 0 && at.item < len(t.entries); n-- {
		if at.line++; at.line >= len(t.lines(at.item)) {
			at = position{item: at.item + 1}
		}
	}
	isBefore := at.item < end.item || at.item == end.item && at.line < end.line
	t.top, t.isScrolled = at, isBefore
}

// ScrollToStart shows the first item, ScrollToEnd the last one.
func (t *Transcript) ScrollToStart() { t.top, t.isScrolled = position{}, true }

// ScrollToEnd shows the end, and follows new items.
func (t *Transcript) ScrollToEnd() { t.isScrolled = false }

// IsScrolled reports whether the end is out of view.
func (t *Transcript) IsScrolled() bool { return t.isScrolled }
