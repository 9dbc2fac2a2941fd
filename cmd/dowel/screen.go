package main

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

// screen is an output stream with what is known of who reads it. It is safe for concurrent use.
type screen struct {
	file   *os.File // where the writer is a terminal, else nil
	colour bool
	gone   func() // called once, when nobody reads any more

	mu      sync.Mutex
	w       io.Writer
	status  string // what stands for now below everything else, on a terminal: one line or several
	held    bool   // no status is shown meanwhile
	closed  bool   // nobody reads any more
	failed  error  // why something could not be written
	scratch []byte
}

func newScreen(w io.Writer, gone func()) *screen {
	s := &screen{w: w, gone: gone, file: terminal(w)}
	s.colour = s.file != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// newTerminalScreen returns a screen that treats w as the terminal of a file.
func newTerminalScreen(w io.Writer, file *os.File, colour bool) *screen {
	return &screen{w: w, gone: func() {}, file: file, colour: colour}
}

// isTerminal reports whether a person reads the screen at a terminal.
func (s *screen) isTerminal() bool { return s.file != nil }

// terminal returns the terminal that a stream is, nil if it is none.
func terminal(stream any) *os.File {
	if file, ok := stream.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// Write writes above the status line. What nobody reads any more is swallowed: that is no failure of a command.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return len(p), nil
	}
	out := p
	if s.status != "" {
		s.scratch = append(append(append(s.scratch[:0], s.clear()...), p...), s.status...)
		out = s.scratch
		if !strings.HasSuffix(string(p), "\n") {
			out = out[:len(out)-len(s.status)]
			s.status = ""
		}
	}
	if _, err := s.w.Write(out); err != nil {
		if !errors.Is(err, syscall.EPIPE) {
			s.failed = err
			return 0, err
		}
		s.closed = true
		s.gone()
	}
	return len(p), nil
}

// err is why something could not be written; nil if all was.
func (s *screen) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// clear takes the status away; s.mu is held.
func (s *screen) clear() string {
	up := strings.Count(s.status, "\n")
	if up == 0 {
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}

// show replaces the status line, which stands below everything else; an empty one removes it. It is shown on terminals.
func (s *screen) show(status string) {
	if s.file == nil {
		return
	}
	s.stand(shorten(status, s.columns()-1))
}

// stand replaces the status by one of several lines, none of which may be wider than the terminal.
func (s *screen) stand(status string) {
	if s.file == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held || s.closed || status == s.status {
		return
	}
	_, _ = io.WriteString(s.w, s.clear()+status) // it is for show
	s.status = status
}

// hold removes the status line, and keeps it away until it is let go: for questions.
func (s *screen) hold(held bool) {
	if held {
		s.show("")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
}

// columns is the width to fit things into.
func (s *screen) columns() int {
	if s.file != nil {
		if width, _, err := term.GetSize(int(s.file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// width is how long a line may be: what is read by a program is not cut.
func (s *screen) width() int {
	if s.file == nil {
		return 1 << 16
	}
	return s.columns() - 1
}

// rows is the height to fit things into.
func (s *screen) rows() int {
	if s.file != nil {
		if _, height, err := term.GetSize(int(s.file.Fd())); err == nil && height > 0 {
			return height
		}
	}
	return 24
}

// The styles are plain text where nobody would see them.
func (s *screen) bold(text string) string   { return s.styled("1", text) }
func (s *screen) dim(text string) string    { return s.styled("2", text) }
func (s *screen) red(text string) string    { return s.styled("31", text) }
func (s *screen) green(text string) string  { return s.styled("32", text) }
func (s *screen) yellow(text string) string { return s.styled("33", text) }
func (s *screen) cyan(text string) string   { return s.styled("36", text) }

func (s *screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clean returns foreign text as a terminal may be given it. What goes elsewhere stays as it is.
func (s *screen) clean(text string) string {
	if s.file == nil {
		return text
	}
	return printable(text)
}

var escapeSequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)?)`)

// printable drops what a terminal would obey, and what turns text around, with what belongs to it: see revealed for questions.
func printable(text string) string {
	if !strings.ContainsFunc(text, obeyed) && utf8.ValidString(text) {
		return text
	}
	text = escapeSequence.ReplaceAllString(strings.ToValidUTF8(text, "\uFFFD"), "")
	return strings.Map(func(r rune) rune {
		if obeyed(r) {
			return -1
		}
		return r
	}, text)
}

func obeyed(r rune) bool {
	const bidi = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
	return unicode.IsControl(r) && r != '\n' && r != '\t' || strings.ContainsRune(bidi, r)
}

// revealed shows what cannot be seen: controls but for ends of lines and tabs, what turns text around, and what is invisible stand
// there escaped. It is for texts that something is decided about, of which nothing may be left out; printable is for output.
func revealed(text string) string {
	if !strings.ContainsFunc(text, unseen) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for rest := text; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case !unseen(r):
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

func unseen(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' ||
		unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// revealedLine returns what is decided about as one line.
func revealedLine(text string) string { return line(revealed(text)) }

// line returns foreign text as one line.
func line(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// firstLine returns the first line of foreign text that says something.
func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line(first)
}

// shorten cuts text to so many characters.
func shorten(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width-1, 0)]) + "…"
}

// wrap breaks words into lines of at most width characters; a longer word has a line of its own.
func wrap(words []string, width int) []string {
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
