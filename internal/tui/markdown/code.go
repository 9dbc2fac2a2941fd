package markdown

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/dowel-mcp/dowel/internal/tui/highlight"
	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/yuin/goldmark/ast"
)

// renderCode returns a block of code behind a bar. Long lines continue on the next line.
func (r *renderer) renderCode(n ast.Node, width int) (lines []string) {
	r.code = r.newScanner(n)
	segments := n.Lines()
	for i := range segments.Len() {
		segment := segments.At(i)
		lines = append(lines, r.codeLines(strings.TrimRight(string(segment.Value(r.source)), "\n"), width)...)
	}
	if closed, ok := n.(*ast.HTMLBlock); ok && closed.HasClosure() {
		lines = append(lines, r.codeLines(strings.TrimSpace(string(closed.ClosureLine.Value(r.source))), width)...)
	}
	return lines
}

// newScanner returns the scanner of a block of code, or nil if its language is unknown.
func (r *renderer) newScanner(n ast.Node) *highlight.Scanner {
	if r.code != nil && n.Parent().Kind() == ast.KindDocument && n.PreviousSibling() == nil {
		continued := *r.code
		return &continued
	}
	switch n := n.(type) {
	case *ast.FencedCodeBlock:
		return highlight.New(string(n.Language(r.source)))
	case *ast.HTMLBlock:
		return highlight.New("html")
	}
	return nil
}

// codeLines returns a line of code in parts that are at most width columns wide.
func (r *renderer) codeLines(line string, width int) (lines []string) {
	bar := r.theme.Dim.Render("│") + " "
	spans := []highlight.Span{{End: len(line)}}
	style := func(highlight.Kind) lipgloss.Style { return r.theme.Code }
	if r.code != nil {
		spans, style = r.code.ScanLine(line), r.codeStyle
	}
	at := 0
	for _, part := range theme.Break(line, width-2) {
		lines = append(lines, bar+paint(part, at, spans, style))
		at += len(part)
	}
	return lines
}

// paint returns a part of a line in the styles of its words. at is the part's offset in the line.
func paint(part string, at int, spans []highlight.Span, style func(highlight.Kind) lipgloss.Style) string {
	var b strings.Builder
	for _, span := range spans {
		if n := min(span.End-at, len(part)); n > 0 {
			b.WriteString(style(span.Kind).Render(part[:n]))
			part, at = part[n:], at+n
		}
	}
	return b.String()
}

// codeStyle returns the style of a kind of words.
func (r *renderer) codeStyle(kind highlight.Kind) lipgloss.Style {
	t := r.theme
	switch kind {
	case highlight.Comment:
		return t.Dim.Italic(true)
	case highlight.Text, highlight.Added:
		return t.Good
	case highlight.Number:
		return t.Warn
	case highlight.Keyword:
		return t.Code
	case highlight.Name:
		return t.Name
	case highlight.Removed:
		return t.Bad
	case highlight.Plain:
	}
	return t.Plain
}
