package term

import (
	"strings"
	"unicode/utf8"
)

// Table lays rows out in lines as wide as the output. The first row is the header.
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

func ColumnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = min(max(widths[i], utf8.RuneCountInString(cell)), 40)
		}
	}
	return widths
}

func LayOutRow(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i == len(row)-1 {
			b.WriteString(cell)
			break
		}
		cell = Shorten(cell, widths[i])
		b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}
