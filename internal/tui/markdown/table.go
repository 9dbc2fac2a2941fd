package markdown

import (
	"strings"

	"github.com/dowel-mcp/dowel/internal/tui/theme"
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// renderTable lays out a table. The widest columns shrink until it fits, and their cells are cut.
func (r *renderer) renderTable(table *tables.Table, width int) (lines []string) {
	var rows [][]string
	for n := table.FirstChild(); n != nil; n = n.NextSibling() {
		var row []string
		for cell := n.FirstChild(); cell != nil; cell = cell.NextSibling() {
			row = append(row, r.cellText(cell, n.Kind() == tables.KindTableHeader))
		}
		rows = append(rows, row)
	}
	widths := fitColumns(rows, width)
	for i, row := range rows {
		var cells, rule []string
		for column, w := range widths {
			cell := ""
			if column < len(row) {
				cell = theme.Cut(row[column], w)
			}
			cells = append(cells, cell+strings.Repeat(" ", max(w-theme.Width(cell), 0)))
			rule = append(rule, strings.Repeat("─", w))
		}
		lines = append(lines, theme.Cut(strings.TrimRight(strings.Join(cells, r.theme.Dim.Render(" │ ")), " "), width))
		if i == 0 {
			lines = append(lines, theme.Cut(r.theme.Dim.Render(strings.Join(rule, "─┼─")), width))
		}
	}
	return lines
}

func (r *renderer) cellText(cell ast.Node, isHeader bool) string {
	content := strings.ReplaceAll(r.inlineText(cell), "\n", " ")
	if isHeader {
		return r.theme.Bold.Render(content)
	}
	return content
}

// fitColumns returns the widths of the columns of a table that is at most width columns wide, where
// the columns have at least one character each.
func fitColumns(rows [][]string, width int) (widths []int) {
	for _, row := range rows {
		for column, cell := range row {
			if column == len(widths) {
				widths = append(widths, 1)
			}
			widths[column] = max(widths[column], theme.Width(cell))
		}
	}
	total := 3 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for total > width {
		widest := 0
		for column, w := range widths {
			if w > widths[widest] {
				widest = column
			}
		}
		if len(widths) == 0 || widths[widest] <= 1 {
			break
		}
		widths[widest]--
		total--
	}
	return widths
}
