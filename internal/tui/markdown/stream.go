package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// Stream renders a reply while it arrives. Blocks that are complete are rendered once. Only the last
// block is rendered again with each piece, so that the cost of a piece does not depend on the length
// of the reply. The zero value is an empty reply.
type Stream struct {
	// Blocks counts the renderings of blocks, for tests.
	Blocks int

	done  []string // complete blocks
	tail  string   // the unfinished block
	fence string   // the opening line of the code block that tail is in; "" outside of code

	width    int
	isDark   bool
	rendered []string // the lines of the first renderedN blocks of done
	count    int
}

// maxBlock limits the unfinished block, in bytes. A longer one is split between two lines.
const maxBlock = 8 << 10

// Append adds a piece of the reply.
func (s *Stream) Append(piece string) {
	s.tail += piece
	for {
		end := s.findEnd()
		if end < 0 {
			return
		}
		block := s.tail[:end]
		s.tail = s.tail[end:]
		if s.fence != "" && !closesFence(block, s.fence) { // a long block of code continues
			s.done = append(s.done, block+"\n"+fenceMark(s.fence)+"\n")
			s.tail = s.fence + "\n" + s.tail
			continue
		}
		s.done = append(s.done, block)
	}
}

// findEnd returns the end of the first complete block of tail, or -1. It sets fence.
func (s *Stream) findEnd() int {
	s.fence = ""
	at, isBlank := 0, false
	for at < len(s.tail) {
		i := strings.IndexByte(s.tail[at:], '\n')
		if i < 0 {
			return endOfLongLine(s.tail)
		}
		line := s.tail[at : at+i]
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
		if at > maxBlock && at < len(s.tail) {
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
		s.width, s.isDark, s.rendered, s.count = width, t.IsDark, nil, 0
	}
	for ; s.count < len(s.done); s.count++ {
		s.rendered = s.join(s.rendered, s.render(s.done[s.count], t))
	}
	if strings.TrimSpace(s.tail) == "" {
		return s.rendered
	}
	return s.join(s.rendered[:len(s.rendered):len(s.rendered)], s.render(s.tail, t))
}

func (s *Stream) render(block string, t *theme.Theme) []string {
	s.Blocks++
	return Render(block, s.width, t)
}

// join appends the lines of a block, with a blank line before it. The halves of a split block of
// code get none.
func (s *Stream) join(lines, block []string) []string {
	if len(lines) > 0 && len(block) > 0 {
		lines = append(lines, "")
	}
	return append(lines, block...)
}
