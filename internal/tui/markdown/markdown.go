// Package markdown renders the Markdown of a model as lines for a terminal. The text may be
// foreign: no control character of it reaches the lines.
package markdown

import (
	"fmt"
	"html"
	"strings"

	"github.com/dowel-mcp/dowel/internal/tui/highlight"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// Render returns the lines of a Markdown text, each at most width columns wide.
func Render(markdown string, width int, t *theme.Theme) []string {
	lines, _ := renderAfter(nil, markdown, width, t)
	return lines
}

// renderAfter renders a text that may begin with the rest of a block of code. code is the scanner
// at that place, or nil. renderAfter returns the scanner at the end of the last block of code.
func renderAfter(code *highlight.Scanner, markdown string, width int, t *theme.Theme) ([]string, *highlight.Scanner) {
	source := []byte(theme.Clean(markdown))
	r := &renderer{source: source, theme: t, code: code}
	lines := r.renderBlocks(parser.Parse(text.NewReader(source)), max(width, minWidth))
	return lines, r.code
}

// minWidth is the least width of a block. Deeply nested blocks are cut there.
const minWidth = 8

type renderer struct {
	source []byte
	theme  *theme.Theme
	code   *highlight.Scanner // of the block of code that the first one continues; then of the last one
}

// renderBlocks returns the lines of the blocks in a node, with blank lines between them.
func (r *renderer) renderBlocks(parent ast.Node, width int) (lines []string) {
	width = max(width, minWidth)
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		block := r.renderBlock(n, width)
		if len(block) == 0 {
			continue
		}
		if len(lines) > 0 && !isTight(n) {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

// isTight reports whether a block follows the one before without a blank line.
func isTight(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindTextBlock:
		return true
	case ast.KindListItem:
		return n.Parent().(*ast.List).IsTight
	case ast.KindList:
		return n.Parent().Kind() == ast.KindListItem && n.(*ast.List).IsTight
	}
	return false
}

func (r *renderer) renderBlock(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		style := r.theme.Heading
		return theme.Wrap(style.Render(strings.Repeat("#", n.Level)+" "+r.inlineText(n)), width)
	case *ast.FencedCodeBlock, *ast.CodeBlock, *ast.HTMLBlock:
		return r.renderCode(n, width)
	case *ast.Blockquote:
		return indent(r.renderBlocks(n, width-2), r.theme.Dim.Render("┃")+" ", r.theme.Dim.Render("┃")+" ")
	case *ast.List:
		return r.renderList(n, width)
	case *ast.ThematicBreak:
		return []string{r.theme.Dim.Render(strings.Repeat("─", width))}
	case *tables.Table:
		return r.renderTable(n, width)
	}
	if n.Type() == ast.TypeBlock && n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock {
		return r.renderBlocks(n, width)
	}
	if content := r.inlineText(n); content != "" {
		return theme.Wrap(content, width)
	}
	return nil
}

// indent puts first before the first line, and rest before the others.
func indent(lines []string, first, rest string) []string {
	for i := range lines {
		lines[i] = first + lines[i]
		first = rest
	}
	return lines
}

func (r *renderer) renderList(list *ast.List, width int) (lines []string) {
	number := list.Start
	for n := list.FirstChild(); n != nil; n = n.NextSibling() {
		mark := "• "
		if list.IsOrdered() {
			mark = fmt.Sprintf("%d. ", number)
			number++
		}
		if len(lines) > 0 && !list.IsTight {
			lines = append(lines, "")
		}
		item := r.renderBlocks(n, width-len(mark))
		if len(item) == 0 {
			item = []string{""}
		}
		lines = append(lines, indent(item, r.theme.Accent.Render(mark), strings.Repeat(" ", theme.Width(mark)))...)
	}
	return lines
}

// inlineText returns the styled text of a block.
func (r *renderer) inlineText(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		r.writeInline(&b, n)
	}
	return b.String()
}

func (r *renderer) writeInline(b *strings.Builder, n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		b.WriteString(resolve(n.Value(r.source)))
		switch {
		case n.HardLineBreak():
			b.WriteString("\n")
		case n.SoftLineBreak():
			b.WriteString(" ")
		}
	case *ast.String:
		b.WriteString(resolve(n.Value))
	case *ast.CodeSpan:
		b.WriteString(r.theme.Code.Render(r.plainText(n)))
	case *ast.Emphasis:
		style := r.theme.Italic
		if n.Level > 1 {
			style = r.theme.Bold
		}
		b.WriteString(style.Render(r.inlineText(n)))
	case *tables.Strikethrough:
		b.WriteString(r.theme.Strike.Render(r.inlineText(n)))
	case *ast.Link:
		r.writeLink(b, r.inlineText(n), string(n.Destination))
	case *ast.Image:
		r.writeLink(b, r.inlineText(n), string(n.Destination))
	case *ast.AutoLink:
		b.WriteString(r.theme.Link.Render(string(n.URL(r.source))))
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			b.Write(segment.Value(r.source))
		}
	case *tables.TaskCheckBox:
		b.WriteString(map[bool]string{true: "☑ ", false: "☐ "}[n.IsChecked])
	default:
		b.WriteString(r.inlineText(n))
	}
}

// writeLink writes a link with its address, which the user must see before opening it.
func (r *renderer) writeLink(b *strings.Builder, label, address string) {
	address = resolve([]byte(address))
	if label != "" && label != address {
		b.WriteString(label + " ")
		b.WriteString("(" + r.theme.Link.Render(address) + ")")
		return
	}
	b.WriteString(r.theme.Link.Render(address))
}

// plainText returns the text of a node as it is in the source.
func (r *renderer) plainText(parent ast.Node) string {
	var b strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Value(r.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// resolve replaces character references and escapes. A reference can name a control character.
func resolve(source []byte) string {
	text := source
	if strings.Contains(string(source), `\`) {
		text = unescape(source)
	}
	return strings.ReplaceAll(theme.Clean(html.UnescapeString(string(text))), "\n", " ")
}

// unescape removes the backslash before punctuation.
func unescape(source []byte) (out []byte) {
	for i := 0; i < len(source); i++ {
		if source[i] == '\\' && i+1 < len(source) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", source[i+1]) >= 0 {
			i++
		}
		out = append(out, source[i])
	}
	return out
}
