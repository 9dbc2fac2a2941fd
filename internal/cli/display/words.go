package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// Plural formats a number of things, such as "1 tool" or "2 tools".
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ProgressText formats progress, such as "[#####-----] 2/4 reading". The bar needs a total.
func ProgressText(p mcp.ProgressParams) string {
	text := formatNumber(p.Progress)
	if p.Total > 0 {
		const width = 20
		done := int(min(max(p.Progress/p.Total, 0), 1) * width)
		text = fmt.Sprintf("[%s%s] %s/%s", strings.Repeat("#", done), strings.Repeat("-", width-done), text, formatNumber(p.Total))
	}
	if p.Message != "" {
		text += " " + term.Line(p.Message)
	}
	return text
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Duration formats a duration, such as "0.3s", "2s" or "2m05s".
func Duration(d time.Duration) string {
	switch {
	case d < time.Minute && d > 0 && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// Count formats a number of things, such as "1 step" or "1,200 steps".
func Count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return Thousands(n) + " " + of + "s"
}

// Thousands formats a number with commas between groups of three digits.
func Thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
