package markdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
)

// plain returns lines without styles.
func plain(lines []string) string { return ansi.Strip(strings.Join(lines, "\n")) }

func TestRender(t *testing.T) {
	for name, tt := range map[string]struct{ source, want string }{
		"paragraphs":    {"one\ntwo\n\nthree", "one two\n\nthree"},
		"hard break":    {"one  \ntwo", "one\ntwo"},
		"heading":       {"# Title\ntext", "# Title\n\ntext"},
		"inline":        {"a *b* **c** `d  e` ~~f~~ \\*g\\*", "a b c d  e f *g*"},
		"wrapped":       {"a long line of several words here", "a long line of several\nwords here"},
		"tight list":    {"- a\n- b\n  1. c\n  2. d", "• a\n• b\n  1. c\n  2. d"},
		"loose list":    {"- a\n\n- b", "• a\n\n• b"},
		"tasks":         {"- [x] a\n- [ ] b", "• ☑ a\n• ☐ b"},
		"numbers go on": {"3. a\n4. b", "3. a\n4. b"},
		"quote":         {"> a\n>\n> b", "┃ a\n┃ \n┃ b"},
		"code":          {"```go\nif a {\n\tb()\n}\n```", "│ if a {\n│     b()\n│ }"},
		"long code":     {"```\nabcdefghijklmnopqrstuvwxyz\n```", "│ abcdefghijklmnopqrstuv\n│ wxyz"},
		"open code":     {"```\na", "│ a"},
		"table":         {"|a|b|\n|---|---|\n|long|x|", "a    │ b\n─────┼──\nlong │ x"},
		"wide table":    {"|a|b|\n|---|---|\n|a very long cell with words|x|", "a                    │ b\n─────────────────────┼──\na very long cell wi… │ x"},
		"links":         {"[a](http://b.c) <http://d.e> ![f](g.png)", "a (http://b.c)\nhttp://d.e f (g.png)"},
		"HTML":          {"<div>\nx\n</div>\n\na <b>c</b>", "│ <div>\n│ x\n│ </div>\n\na <b>c</b>"},
		"rule":          {"a\n\n---\n\nb", "a\n\n────────────────────────\n\nb"},
		"references":    {"a &lt; b &#27;[31m", "a < b [31m"},
		"empty":         {" \n\n", ""},
	} {
		got := plain(Render(tt.source, 24, theme.New(true)))
		if strings.ReplaceAll(got, "┼───", "┼──") != strings.ReplaceAll(tt.want, "┼───", "┼──") && got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// No line is wider than asked for.
func TestWidths(t *testing.T) {
	source := "# 標題 of a heading\n\n- a\n  - b\n    - c\n      - deep 日本語の長い文章です\n\n> > > quoted text that is long\n\n|日本|b|\n|---|---|\n|語語語語語語語語|xxxxxxxxxxxx|\n\n```\n日本語日本語日本語日本語\n```\n" + strings.Repeat("x", 100)
	for _, width := range []int{20, 24, 80} {
		for _, line := range Render(source, width, theme.New(false)) {
			if w := theme.Width(line); w > width {
				t.Errorf("%d columns instead of %d: %q", w, width, line)
			}
		}
	}
}

const document = "# Title\n\nA paragraph with **bold** text.\n\n- a\n\n- b\n\n  more of b\n\n```sh\nls\n\n# no heading\n```\n\n| a |\n|---|\n| b |\n\nThe end."

// A reply in pieces is the same as the whole, however it is cut.
func TestStreamIsWhole(t *testing.T) {
	look := theme.New(true)
	want := Render(document, 40, look)
	for size := 1; size < 20; size++ {
		var s Stream
		for rest := document; rest != ""; {
			n := min(size, len(rest))
			s.Append(rest[:n])
			rest = rest[n:]
			s.Lines(40, look)
		}
		if got := s.Lines(40, look); !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: got\n%s\nwant\n%s", size, plain(got), plain(want))
		}
	}
}

// A piece renders one block, however long the reply is.
func TestStreamRendersTheLastBlockOnly(t *testing.T) {
	look := theme.New(true)
	var s Stream
	for i := range 2000 {
		before := s.Blocks
		s.Append(fmt.Sprintf("Paragraph %d.\n\n", i))
		s.Lines(80, look)
		if n := s.Blocks - before; n > 2 {
			t.Fatalf("piece %d renders %d blocks", i, n)
		}
	}
	var code Stream
	code.Append("```\n")
	for i := range 2000 {
		code.Append(fmt.Sprintf("line %d of a long block of code\n", i))
	}
	if n := len(code.tail.text); n > 2*maxBlock {
		t.Errorf("%d bytes of code are rendered with each piece", n)
	}
	if text := plain(code.Lines(80, look)); !strings.Contains(text, "│ line 0 ") || !strings.Contains(text, "│ line 1999 ") || strings.Contains(text, "`") {
		t.Errorf("the code is %.200q", text)
	}
	var line Stream
	for range 100 {
		line.Append(strings.Repeat("ä", 1000))
	}
	if n := len(line.tail.text); n > 5*maxBlock || !strings.HasPrefix(line.done[0].text, "ää") || strings.ToValidUTF8(line.done[0].text, "?") != line.done[0].text {
		t.Errorf("%d bytes of a line are rendered with each piece", n)
	}
}

// A model may open a block of code with a line or a mark that is longer than a part. The parts of
// the block do not repeat it.
func TestStreamOfLongFences(t *testing.T) {
	for _, fence := range []string{"```" + strings.Repeat("a", 2*maxBlock), "```go " + strings.Repeat("ä ", maxBlock), strings.Repeat("`", 2*maxBlock)} {
		var s Stream
		s.Append(fence + "\n")
		s.Append(strings.Repeat("x\n", 2*maxBlock))
		size := len(s.tail.text)
		for _, block := range s.done {
			size += len(block.text)
		}
		if text := plain(s.Lines(80, theme.New(true))); size > 10*maxBlock || strings.Count(text, "│ x") != 2*maxBlock {
			t.Errorf("%.10s: %d parts of %d bytes in all, with %d lines of code", fence, len(s.done), size, strings.Count(text, "│ x"))
		}
	}
}

// Code that is longer than a part of a reply has the colours of the whole.
func TestStreamHighlightsLongCode(t *testing.T) {
	code := "Look:\n\n```c\n/*" + strings.Repeat(" a comment of several parts\n", maxBlock/8) + "*/ return 1;\n```\n\nThe end."
	for _, look := range []*theme.Theme{theme.New(true), theme.New(false)} {
		want := Render(code, 40, look)
		var s Stream
		for line := range strings.SplitAfterSeq(code, "\n") {
			s.Append(line)
		}
		if len(s.done) < 4 {
			t.Fatalf("the reply has %d parts", len(s.done))
		}
		for range 2 {
			if got := s.Lines(40, look); !slices.Equal(got, want) {
				t.Errorf("the lines are\n%q\nwant\n%q", got[len(got)-5:], want[len(want)-5:])
			}
		}
		if last := want[len(want)-3]; !strings.Contains(last, look.Code.Render("return")) || !strings.Contains(last, look.Warn.Render("1")) {
			t.Errorf("the last line of code is %q", last)
		}
	}
}

// A line of code that is wider than the screen keeps its colours, and so does the text around it.
func TestHighlightedLineContinues(t *testing.T) {
	look := theme.New(true)
	got := Render("```go\nreturn \"a text that is long\" // why\n```", 20, look)
	bar := look.Dim.Render("│") + " "
	comment := look.Dim.Italic(true)
	want := []string{
		bar + look.Code.Render("return") + " " + look.Good.Render("\"a text tha"),
		bar + look.Good.Render("t is long\"") + " " + comment.Render("// why"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A complete line of code keeps its colours while the rest arrives.
func TestStreamOfCodeDoesNotFlicker(t *testing.T) {
	look := theme.New(true)
	source := "```js\nconst a = `text\n// more of it\n`; /* comment\n'of two lines' */ f(a, 'b');\nreturn { key: 1 };\n```\n"
	var s Stream
	var before []string
	for _, piece := range strings.SplitAfter(source, "") {
		s.Append(piece)
		lines := s.Lines(40, look)
		if n := max(len(before)-1, 0); len(lines) < n || !slices.Equal(lines[:n], before[:n]) {
			t.Fatalf("after %q the lines are\n%q\nbefore\n%q", piece, lines, before)
		}
		before = slices.Clone(lines)
	}
	if len(before) != 5 {
		t.Errorf("the lines are %q", before)
	}
}
