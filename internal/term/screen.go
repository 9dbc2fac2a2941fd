// Package term is the program's terminal. A [Screen] is an output stream. On a terminal it has
// styles, a width, and a status line below the output; in a file or a pipe it has none of them. A
// [Console] edits an input line with history and completion. [Lines] reads lines, and a context can
// end the wait for the next one.
//
// Text of servers and models is foreign: pass it through [Line], [Printable] or [Screen.Clean]
// before it is shown, and through [Reveal] if the user decides about it, so that nothing in it is
// hidden.
package term

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/dowel-mcp/dowel/internal/lazyregexp"
)

// Screen is an output stream that knows whether it is a terminal. It is safe for concurrent use.
type Screen struct {
	File     *os.File // the terminal, or nil if the output is something else
	colour   bool
	onClosed func() // called once, when a write finds that the reader has closed the pipe

	mu         sync.Mutex
	w          io.Writer
	status     string // shown below all output: one line or several
	statusHeld bool   // while true, SetStatus does nothing

	statusColumns int   // the width of the terminal when the status was written
	closed        bool  // the reader has closed the pipe
	writeErr      error // the latest error of a write
	scratch       []byte
}

// NewScreen returns a screen that writes to w. It calls onClosed once if w is a pipe and its reader
// has closed it. It uses colours if w is a terminal, unless NO_COLOR is set or TERM is dumb.
func NewScreen(w io.Writer, onClosed func()) *Screen {
	s := &Screen{w: w, onClosed: onClosed, File: Terminal(w)}
	s.colour = s.File != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// NewTerminalScreen returns a screen that writes to w and takes its size from the terminal file.
func NewTerminalScreen(w io.Writer, file *os.File, colour bool) *Screen {
	return &Screen{w: w, onClosed: func() {}, File: file, colour: colour}
}

// IsTerminal reports whether the screen is a terminal.
func (s *Screen) IsTerminal() bool { return s.File != nil }

// Terminal returns stream as a file if it is a terminal, or nil.
func Terminal(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// Write writes above the status line. After the reader of a pipe has closed it, Write discards p
// and reports success: a closed pipe must not fail the command.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return len(p), nil
	}
	out := p
	if s.status != "" {
		s.scratch = append(append(append(s.scratch[:0], s.eraseSequence()...), p...), s.status...)
		out = s.scratch
		if !strings.HasSuffix(string(p), "\n") {
			out = out[:len(out)-len(s.status)]
			s.status = ""
		}
	}
	if _, err := s.w.Write(out); err != nil {
		if !errors.Is(err, syscall.EPIPE) {
			s.writeErr = err
			return 0, err
		}
		s.closed = true
		s.onClosed()
	}
	return len(p), nil
}

// Err returns the latest error of a write, or nil. A closed pipe is not an error.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeErr
}

// eraseSequence returns the control sequence that erases the status, line by line: tmux and others
// copy a screen that is erased at once to their history, with each change of a status of its
// height. The caller holds s.mu.
func (s *Screen) eraseSequence() string {
	up := strings.Count(s.status, "\n")
	if columns := s.Columns(); columns < s.statusColumns { // the terminal has become narrower, and has wrapped the status
		for line := range strings.SplitSeq(s.status, "\n") {
			up += max(0, TextWidth(escapeSequence().ReplaceAllString(line, ""))-1) / columns
		}
	}
	return "\r\x1b[K" + strings.Repeat("\x1b[A\x1b[K", up)
}

// SetStatus replaces the status line below all output; "" removes it. It shortens status to the
// terminal's width, and does nothing on other outputs.
func (s *Screen) SetStatus(status string) {
	if s.File == nil {
		return
	}
	s.SetStatusLines(Shorten(status, s.Columns()-1))
}

// SetStatusLines replaces the status by one of several lines. Each line must be narrower than the
// terminal.
func (s *Screen) SetStatusLines(status string) {
	if s.File == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statusHeld || s.closed || status == s.status {
		return
	}
	_, _ = io.WriteString(s.w, s.eraseSequence()+status) // the status is only decoration
	s.status, s.statusColumns = status, s.Columns()
}

// HoldStatus(true) removes the status line and disables SetStatus, for example during a question.
// HoldStatus(false) enables it again.
func (s *Screen) HoldStatus(held bool) {
	if held {
		s.SetStatus("")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statusHeld = held
}

// Columns returns the width of the terminal, or 80 if the width is unknown.
func (s *Screen) Columns() int {
	if s.File != nil {
		if width, _, err := term.GetSize(int(s.File.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// Width returns the maximal length of a line. Output for programs is practically not limited.
func (s *Screen) Width() int {
	if s.File == nil {
		return 1 << 16
	}
	return s.Columns() - 1
}

// Rows returns the height of the terminal, or 24 if the height is unknown.
func (s *Screen) Rows() int {
	if s.File != nil {
		if _, height, err := term.GetSize(int(s.File.Fd())); err == nil && height > 0 {
			return height
		}
	}
	return 24
}

// Bold returns text in bold; see [Screen.Styled].
func (s *Screen) Bold(text string) string { return s.Styled("1", text) }

// Dim returns text in a faint colour; see [Screen.Styled].
func (s *Screen) Dim(text string) string { return s.Styled("2", text) }

// Red returns text in red; see [Screen.Styled].
func (s *Screen) Red(text string) string { return s.Styled("31", text) }

// Green returns text in green; see [Screen.Styled].
func (s *Screen) Green(text string) string { return s.Styled("32", text) }

// Yellow returns text in yellow; see [Screen.Styled].
func (s *Screen) Yellow(text string) string { return s.Styled("33", text) }

// Cyan returns text in cyan; see [Screen.Styled].
func (s *Screen) Cyan(text string) string { return s.Styled("36", text) }

// Styled returns text between the SGR control sequence with the given code, such as "1;4", and a
// reset. It returns text unchanged if the screen does not use colours.
func (s *Screen) Styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean returns foreign text as [Printable] if the screen is a terminal, else unchanged.
func (s *Screen) Clean(text string) string {
	if s.File == nil {
		return text
	}
	return Printable(text)
}

var escapeSequence = lazyregexp.New(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?)`)

// Printable removes control sequences, control characters, bidirectional overrides and characters
// of zero width from text. It keeps line breaks, tabs, and the joiners that scripts and emoji need.
// Use [Reveal] if the user decides about the text.
func Printable(text string) string {
	if !strings.ContainsFunc(text, isControl) && utf8.ValidString(text) {
		return text
	}
	text = escapeSequence().ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, text)
}

// isControl reports whether Printable removes r.
func isControl(r rune) bool {
	const bidi = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	const zeroWidth = "\u180e\u200b\u2060\u2061\u2062\u2063\u2064\ufeff\u115f\u1160\u3164\uffa0"
	const firstTag, lastTag = 0xe0000, 0xe007f // an invisible copy of ASCII
	return unicode.IsControl(r) && r != '\n' && r != '\t' || strings.ContainsRune(bidi, r) ||
		strings.ContainsRune(zeroWidth, r) || r >= firstTag && r <= lastTag
}

// Reveal escapes control characters, bidirectional overrides and invisible characters of text. It
// keeps line breaks and tabs. Use it for text that the user decides about, such as a command to
// approve, because no part of that text may be hidden. Use [Printable] for other output.
func Reveal(text string) string {
	if !strings.ContainsFunc(text, isInvisible) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case !isInvisible(r):
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(`\r`)
		case r <= unicode.MaxASCII:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		rest = rest[n:]
	}
	return b.String()
}

// isInvisible reports whether Reveal escapes r.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// RevealLine returns [Reveal] of text as one line.
func RevealLine(text string) string { return Line(Reveal(text)) }

// Line returns [Printable] of text as one line, with single spaces between words.
func Line(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }

// FirstLine returns [Line] of the first line of text that is not blank.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Line(first)
}

// Wrap joins words to lines of at most width characters. A longer word gets its own line.
func Wrap(words []string, width int) []string {
	var lines []string
	current, length := "", 0
	for _, word := range words {
		size := TextWidth(word)
		switch {
		case current == "":
			current, length = word, size
		case length+1+size > width:
			lines = append(lines, current)
			current, length = word, size
		default:
			current, length = current+" "+word, length+1+size
		}
	}
	if current != "" {
		lines = append(lines, current)
	}
	return lines
}

// Divert makes the screen write to another writer until restore is called.
func (s *Screen) Divert(to io.Writer) (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.w
	s.w = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w = before
	}
}
