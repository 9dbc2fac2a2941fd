// Package highlight finds comments, texts, numbers and keywords in code, so that a terminal can
// show them in colours. Its scanner looks at each byte a bounded number of times: the code may be
// foreign.
package highlight

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is a kind of words in code.
type Kind uint8

// The kinds of words.
const (
	Plain Kind = iota
	Comment
	Text   // between quotes
	Number // and other constants, such as true
	Keyword
	Name    // of a function that is called, a key of a data file, a tag
	Added   // a line of a diff
	Removed // a line of a diff
)

// Span is a part of a line.
type Span struct {
	End  int // the offset behind the part, in bytes
	Kind Kind
}

// Scanner finds the words of code line by line. Make one with [New]. A copy continues at the same
// line.
type Scanner struct {
	syntax *syntax
	open   *bracket // the comment or text that the line before has left open, or nil
	inTag  bool     // of markup
}

// New returns a scanner at the first line of code, or nil for an unknown language. The name is
// written after the fence of a code block in Markdown, such as go or js.
func New(language string) *Scanner {
	if s := languages[strings.ToLower(language)]; s != nil {
		return &Scanner{syntax: s}
	}
	return nil
}

// ScanLine returns the parts of the next line, in their order and without gaps. The line has no
// line break.
func (s *Scanner) ScanLine(line string) []Span {
	if s.syntax.isDiff {
		return []Span{{len(line), diffKind(line)}}
	}
	var l lineScan
	for l.at < len(line) {
		s.scanWord(&l, line)
	}
	if s.open != nil && !s.open.isLong {
		s.open = nil
	}
	return l.spans
}

// lineScan is a position in a line, and the parts before it.
type lineScan struct {
	at    int
	spans []Span
}

// addSpan makes the bytes up to end a span of that kind.
func (l *lineScan) addSpan(end int, kind Kind) {
	if n := len(l.spans); n > 0 && l.spans[n-1].Kind == kind {
		l.spans[n-1].End = end
	} else {
		l.spans = append(l.spans, Span{end, kind})
	}
	l.at = end
}

// scanWord finds the next part.
func (s *Scanner) scanWord(l *lineScan, line string) {
	if s.open == nil {
		if b := s.findBracket(line, l.at); b != nil {
			s.open = b
			l.addSpan(l.at+len(b.open), b.kind)
		}
	}
	if b := s.open; b != nil {
		end, isClosed := b.findEnd(line, l.at)
		if isClosed {
			s.open = nil
		}
		kind := b.kind
		if isClosed && kind == Text && s.syntax.isKey(line[end:]) {
			kind = Name
			if n := len(l.spans); n > 0 { // otherwise an earlier line has its beginning
				l.spans[n-1].Kind = Name
			}
		}
		l.addSpan(end, kind)
		return
	}
	if s.syntax.isMarkup {
		s.scanMarkup(l, line)
		return
	}
	end := s.syntax.wordEnd(line, l.at)
	l.addSpan(end, s.syntax.wordKind(line[l.at:end], line[end:]))
}

// findBracket returns the comment or text that begins at an offset, or nil.
func (s *Scanner) findBracket(line string, at int) *bracket {
	for i := range s.syntax.brackets {
		b := &s.syntax.brackets[i]
		isHere := strings.HasPrefix(line[at:], b.open)
		if isHere && b.afterSpace && at > 0 && line[at-1] != ' ' {
			isHere = false
		}
		if isHere && (!s.syntax.isMarkup || s.inTag == (b.kind == Text)) {
			return b
		}
	}
	return nil
}

// findEnd returns the offset behind a comment or text, and whether it ends in the line.
func (b *bracket) findEnd(line string, at int) (end int, isClosed bool) {
	if b.close == "" {
		return len(line), false
	}
	for i := at; i < len(line); i++ {
		switch {
		case line[i] == '\\' && b.kind == Text && !b.isRaw:
			i++
		case strings.HasPrefix(line[i:], b.close):
			return i + len(b.close), true
		}
	}
	return len(line), false
}

// scanMarkup finds the next part outside of comments and attributes.
func (s *Scanner) scanMarkup(l *lineScan, line string) {
	rest := line[l.at:]
	switch {
	case s.inTag && (rest[0] == '>' || strings.HasPrefix(rest, "/>")):
		s.inTag = false
		l.addSpan(l.at+strings.IndexByte(rest, '>')+1, Keyword)
	case s.inTag:
		end := s.syntax.wordEnd(line, l.at)
		kind := Plain
		if s.syntax.isKey(line[end:]) {
			kind = Name
		}
		l.addSpan(end, kind)
	case rest[0] == '<' && len(rest) > 1 && (rest[1] == '/' || rest[1] == '!' || rest[1] == '?' || isLetter(rest[1])):
		s.inTag = true
		end := l.at + 1
		if !isLetter(rest[1]) {
			end++
		}
		if end < len(line) && isLetter(line[end]) {
			end = s.syntax.wordEnd(line, end)
		}
		l.addSpan(end, Keyword)
	default:
		end := strings.IndexByte(rest[1:], '<')
		if end < 0 {
			end = len(rest) - 1
		}
		l.addSpan(l.at+1+end, Plain)
	}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// wordEnd returns the end of the word, number or other character at an offset.
func (s *syntax) wordEnd(line string, at int) int {
	end := at
	for end < len(line) {
		r, size := utf8.DecodeRuneInString(line[end:])
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r < utf8.RuneSelf && strings.ContainsRune(s.wordMarks, r)
		isPoint := r == '.' && isDigit(line[at]) && end+1 < len(line) && isDigit(line[end+1])
		if !isWord && !isPoint {
			break
		}
		end += size
	}
	if end == at {
		_, size := utf8.DecodeRuneInString(line[at:])
		end += size
	}
	return end
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// wordKind returns the kind of a word. rest is the line behind it.
func (s *syntax) wordKind(word, rest string) Kind {
	known := word
	if s.isCaseless {
		known = strings.ToLower(word)
	}
	switch kind, ok := s.words[known]; {
	case s.isKey(rest) && !isPunctuation(word):
		return Name
	case ok:
		return kind
	case isDigit(word[0]):
		return Number
	case strings.HasPrefix(rest, "(") && !isPunctuation(word):
		return Name
	}
	return Plain
}

func isPunctuation(word string) bool {
	r, _ := utf8.DecodeRuneInString(word)
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$'
}

// maxKeySpaces limits the looked-at spaces between a key and its mark, and the mark itself.
const maxKeySpaces = 32

// isKey reports whether a word is a key. rest is the line behind it.
func (s *syntax) isKey(rest string) bool {
	return s.keyMark != "" && strings.HasPrefix(strings.TrimLeft(rest[:min(len(rest), maxKeySpaces)], " ")+" ", s.keyMark)
}

func diffKind(line string) Kind {
	switch {
	case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "):
		return Keyword
	case strings.HasPrefix(line, "+"):
		return Added
	case strings.HasPrefix(line, "-"):
		return Removed
	}
	return Plain
}
