package term

import (
	"strings"
)

// Table lays out rows in lines of at most [Screen.Width]. The first row is the header; it must
// exist and must not be shorter than any other row.
func (s *Screen) Table(rows [][]string) (lines []string) {
	widths := ColumnWidths(rows)
	for i, row := range rows {
		text := Shorten(LayOutRow(row, widths), s.Width())
		if i == 0 {
			text = s.Dim(text)
		}
		lines = append(lines, text)
	}
	return lines
}

// ColumnWidths returns the width of each column: its longest cell, at most 40 characters. The first
// row must exist and must not be shorter than any other row.
func ColumnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = min(max(widths[i], TextWidth(cell)), 40)
		}
	}
	return widths
}

// LayOutRow joins the cells of a row, padded and shortened to widths. The last cell keeps its
// length.
func LayOutRow(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i == len(row)-1 {
			b.WriteString(cell)
			break
		}
		cell = Shorten(cell, widths[i])
		b.WriteString(cell + strings.Repeat(" ", widths[i]-TextWidth(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}
