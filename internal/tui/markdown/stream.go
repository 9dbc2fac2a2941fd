package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/tui/highlight"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Stream renders a reply while it arrives. Blocks that are complete are rendered once. Only the
// last block is rendered again with each piece, so that the cost of a piece does not depend on the
// length of the reply. The zero value is an empty reply.
type Stream struct {
	// Blocks counts the renderings of blocks, for tests.
	Blocks int

	done  []part // complete blocks
	tail  part   // the unfinished block
	fence string // the opening line of the code block that tail is in; "" outside of code

	width    int
	isDark   bool
	rendered []string // the lines of the first count blocks of done
	count    int
	code     *highlight.Scanner // at the end of the last code in these blocks
}

// part is a block, or a part of a long one.
type part struct {
	text   string
	isRest bool // of a block of code: its first line repeats the fence
}

// maxBlock limits the unfinished block, in bytes. A longer one is split between two lines.
const maxBlock = 8 << 10

// Append adds a piece of the reply.
func (s *Stream) Append(piece string) {
	s.tail.text += piece
	for {
		end := s.findEnd()
		if end < 0 {
			return
		}
		block, rest := s.tail, s.tail.text[end:]
		block.text = block.text[:end]
		s.tail = part{text: rest}
		if s.fence != "" && !closesFence(block.text, s.fence) { // a long block of code continues
			block.text = strings.TrimSuffix(block.text, "\n") + "\n" + fenceMark(s.fence) + "\n"
			s.tail = part{shortenFence(s.fence) + "\n" + rest, true}
		}
		s.done = append(s.done, block)
	}
}

// maxFence limits the repeated opening line of a long block of code, in bytes.
const maxFence = 80

// shortenFence returns the opening line of a block of code, or the beginning of its mark and of its
// language if it is long: each part of a long block repeats it.
func shortenFence(fence string) string {
	if len(fence) <= maxFence {
		return fence
	}
	mark := fenceMark(fence)
	language, _, _ := strings.Cut(strings.TrimLeft(fence, " ")[len(mark):], " ")
	return mark[:min(len(mark), maxFence/2)] + strings.ToValidUTF8(language[:min(len(language), maxFence/2)], "")
}

// findEnd returns the end of the first complete block of tail, or -1. It sets fence.
func (s *Stream) findEnd() int {
	s.fence = ""
	at, isBlank := 0, false
	for at < len(s.tail.text) {
		i := strings.IndexByte(s.tail.text[at:], '\n')
		if i < 0 {
			return endOfLongLine(s.tail.text)
		}
		line := s.tail.text[at : at+i]
		startsBlock := line != "" && line[0] != ' ' && line[0] != '\t' && !isListMark(line)
		if isBlank && s.fence == "" && startsBlock && at > 0 {
			return at
		}
		switch {
		case s.fence != "" && isClosing(line, s.fence):
			s.fence = ""
		case s.fence == "" && fenceMark(line) != "":
			s.fence = line
		}
		isBlank = strings.TrimSpace(line) == ""
		at += i + 1
		if at > maxBlock && at < len(s.tail.text) {
			return at
		}
	}
	return -1
}

// endOfLongLine returns where an unfinished block that holds a very long line is split, or -1.
func endOfLongLine(tail string) int {
	if len(tail) <= 4*maxBlock {
		return -1
	}
	end := len(tail) - 1
	for end > 0 && !utf8.RuneStart(tail[end]) {
		end--
	}
	return end
}

// isListMark reports whether a line can continue a list after a blank line.
func isListMark(line string) bool {
	rest := strings.TrimLeft(line, "0123456789")
	if rest != line {
		return strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ")")
	}
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "+ ")
}

// fenceMark returns the characters that open a block of code, or "".
func fenceMark(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

// isClosing reports whether a line closes the block of code that the line fence opened.
func isClosing(line, fence string) bool {
	mark := fenceMark(line)
	return strings.HasPrefix(mark, fenceMark(fence)) && strings.TrimSpace(line) == mark
}

func closesFence(block, fence string) bool {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	return len(lines) > 1 && isClosing(lines[len(lines)-1], fence)
}

// Lines returns the lines of the reply so far.
func (s *Stream) Lines(width int, t *theme.Theme) []string {
	if width != s.width || t.IsDark != s.isDark {
		s.width, s.isDark, s.rendered, s.count, s.code = width, t.IsDark, nil, 0, nil
	}
	for ; s.count < len(s.done); s.count++ {
		s.rendered, s.code = s.renderPart(s.rendered, s.done[s.count], t)
	}
	if strings.TrimSpace(s.tail.text) == "" {
		return s.rendered
	}
	lines, _ := s.renderPart(s.rendered[:len(s.rendered):len(s.rendered)], s.tail, t)
	return lines
}

// renderPart appends the lines of a block to the lines before it. A blank line separates two
// blocks, but not the parts of one.
func (s *Stream) renderPart(lines []string, block part, t *theme.Theme) ([]string, *highlight.Scanner) {
	s.Blocks++
	var code *highlight.Scanner
	if block.isRest {
		code = s.code
	}
	rendered, code := renderAfter(code, block.text, s.width, t)
	if len(lines) > 0 && len(rendered) > 0 && !block.isRest {
		lines = append(lines, "")
	}
	return append(lines, rendered...), code
}
