// Package term is the program's terminal. A [Screen] is an output stream that knows whether a
// person reads it: it has styles, a width, and a status line below the output; written to a file or
// a pipe, all of that disappears. A [Console] edits an input line with history and completion,
// [Lines] reads lines that a context can stop waiting for.
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
	"regexp"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Screen is an output stream with what is known of who reads it. It is safe for concurrent use.
type Screen struct {
	File     *os.File // where the writer is a terminal, else nil
	colour   bool
	onClosed func() // called once, when nobody reads any more

	mu         sync.Mutex
	w          io.Writer
	status     string // what stands for now below everything else, on a terminal: one line or several
	statusHeld bool   // no status is shown meanwhile
	closed     bool   // nobody reads any more
	writeErr   error  // why something could not be written
	scratch    []byte
}

func NewScreen(w io.Writer, gone func()) *Screen {
	s := &Screen{w: w, onClosed: gone, File: Terminal(w)}
	s.colour = s.File != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// NewTerminalScreen returns a screen that treats w as the terminal of a file.
func NewTerminalScreen(w io.Writer, file *os.File, colour bool) *Screen {
	return &Screen{w: w, onClosed: func() {}, File: file, colour: colour}
}

// IsTerminal reports whether a person reads the screen at a terminal.
func (s *Screen) IsTerminal() bool { return s.File != nil }

// Terminal returns the terminal that a stream is, nil if it is none.
func Terminal(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// Write writes above the status line. What nobody reads any more is swallowed: that is no failure of a command.
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

// Err is why something could not be written; nil if all was.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeErr
}

// eraseSequence takes the status away; s.mu is held.
func (s *Screen) eraseSequence() string {
	up := strings.Count(s.status, "\n")
	if up == 0 {
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}

// SetStatus replaces the status line, which stands below everything else; an empty one removes it. It is shown on terminals.
func (s *Screen) SetStatus(status string) {
	if s.File == nil {
		return
	}
	s.SetStatusLines(Shorten(status, s.Columns()-1))
}

// SetStatusLines replaces the status by one of several lines, none of which may be wider than the terminal.
func (s *Screen) SetStatusLines(status string) {
	if s.File == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statusHeld || s.closed || status == s.status {
		return
	}
	_, _ = io.WriteString(s.w, s.eraseSequence()+status) // it is for show
	s.status = status
}

// HoldStatus removes the status line, and keeps it away until it is let go: for questions.
func (s *Screen) HoldStatus(held bool) {
	if held {
		s.SetStatus("")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statusHeld = held
}

// Columns is the width to fit things into.
func (s *Screen) Columns() int {
	if s.File != nil {
		if width, _, err := term.GetSize(int(s.File.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// Width is how long a line may be: what is read by a program is not cut.
func (s *Screen) Width() int {
	if s.File == nil {
		return 1 << 16
	}
	return s.Columns() - 1
}

// Rows is the height to fit things into.
func (s *Screen) Rows() int {
	if s.File != nil {
		if _, height, err := term.GetSize(int(s.File.Fd())); err == nil && height > 0 {
			return height
		}
	}
	return 24
}

// The styles are plain text where nobody would see them.
func (s *Screen) Bold(text string) string   { return s.Styled("1", text) }
func (s *Screen) Dim(text string) string    { return s.Styled("2", text) }
func (s *Screen) Red(text string) string    { return s.Styled("31", text) }
func (s *Screen) Green(text string) string  { return s.Styled("32", text) }
func (s *Screen) Yellow(text string) string { return s.Styled("33", text) }
func (s *Screen) Cyan(text string) string   { return s.Styled("36", text) }

func (s *Screen) Styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Clean returns foreign text as a terminal may be given it. What goes elsewhere stays as it is.
func (s *Screen) Clean(text string) string {
	if s.File == nil {
		return text
	}
	return Printable(text)
}

var escapeSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?)`)

// Printable drops what a terminal would obey, and what turns text around, with what belongs to it: see revealed for questions.
func Printable(text string) string {
	if !strings.ContainsFunc(text, isControl) && utf8.ValidString(text) {
		return text
	}
	text = escapeSequence.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, text)
}

func isControl(r rune) bool {
	const bidi = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	return unicode.IsControl(r) && r != '\n' && r != '\t' || strings.ContainsRune(bidi, r)
}

// Reveal shows what cannot be seen: controls but for ends of lines and tabs, what turns text around, and what is invisible stand
// there escaped. It is for texts that something is decided about, of which nothing may be left out; printable is for output.
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

func isInvisible(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// RevealLine returns what is decided about as one line.
func RevealLine(text string) string { return Line(Reveal(text)) }

// Line returns foreign text as one line.
func Line(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }

// FirstLine returns the first line of foreign text that says something.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Line(first)
}

// Shorten cuts text to so many characters.
func Shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// Wrap breaks words into lines of at most width characters; a longer word has a line of its own.
func Wrap(words []string, width int) []string {
	var lines []string
	current, length := "", 0
	for _, word := range words {
		size := utf8.RuneCountInString(word)
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

// Divert has a screen write to somebody else until it is told to go back.
func (s *Screen) Divert(to interface{ Write([]byte) (int, error) }) (back func()) {
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
