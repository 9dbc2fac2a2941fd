package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
)

// table lays out servers in lines of at most so many characters: a row each, and below it what is wrong and what to do.
func (a *app) table(servers []control.Server, width int) (lines []string) {
	rows := [][]string{{"SERVER", "STATE", "ERA", "TOOLS", "SINCE", "FROM", "WHAT"}}
	for _, s := range servers {
		rows = append(rows, cells(s))
	}
	widths := columnWidths(rows)
	for i, row := range rows {
		text := layOut(row, widths)
		if i == 0 {
			lines = append(lines, a.stdout.dim(shorten(text, width)))
			continue
		}
		s := servers[i-1]
		lines = append(lines, a.painted(s.Status, shorten(text, width), widths[0]))
		const indent = "    "
		for _, more := range troubles(s) {
			for _, text := range wrap(strings.Fields(more), width-len(indent)) {
				lines = append(lines, a.stdout.dim(indent+text))
			}
		}
	}
	return lines
}

// cells are the texts of a server's row.
func cells(s control.Server) []string {
	era := s.Revision
	if s.Era != "" {
		era = s.Era + " " + s.Revision
	}
	tools := "-"
	if s.Tools > 0 || s.Status == hub.Ready {
		tools = fmt.Sprint(s.Tools)
	}
	what := line(s.Title)
	if what == "" {
		what = line(s.Origin)
	}
	return []string{line(s.Name), s.Status.String(), era, tools, ago(time.Since(s.Since)), line(s.Source), what}
}

// troubles say what is wrong with a server.
func troubles(s control.Server) (lines []string) {
	switch s.Status {
	case hub.Ready, hub.Starting:
	case hub.Failed, hub.NeedsAuthorization:
		lines = append(lines, firstLine(s.Problem))
		if s.Advice != "" {
			lines = append(lines, "→ "+line(s.Advice))
		}
		if !s.Next.IsZero() {
			lines = append(lines, fmt.Sprintf("attempt %d failed; the next one is at %s", s.Attempt, s.Next.Local().Format(time.TimeOnly)))
		}
	default:
		lines = append(lines, line(s.Cause))
	}
	if s.Note != "" {
		lines = append(lines, line(s.Note))
	}
	for _, q := range s.Quarantined {
		lines = append(lines, line(fmt.Sprintf("the %s %s is left out: %s", q.Kind, q.Name, q.Reason)))
	}
	return lines
}

// ago is a duration in its largest unit.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// tabulate lays rows out in lines as wide as the output. The first row is the header.
func (s *screen) tabulate(rows [][]string) (lines []string) {
	widths := columnWidths(rows)
	for i, row := range rows {
		text := shorten(layOut(row, widths), s.width())
		if i == 0 {
			text = s.dim(text)
		}
		lines = append(lines, text)
	}
	return lines
}

func columnWidths(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = min(max(widths[i], utf8.RuneCountInString(cell)), 40)
		}
	}
	return widths
}

func layOut(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i == len(row)-1 {
			b.WriteString(cell)
			break
		}
		cell = shorten(cell, widths[i])
		b.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
	}
	return strings.TrimRight(b.String(), " ")
}

// painted colours the state of a row, which begins behind the name.
func (a *app) painted(s hub.Status, row string, name int) string {
	colour := a.stdout.dim
	switch s {
	case hub.Ready:
		colour = a.stdout.green
	case hub.Starting:
		colour = a.stdout.cyan
	case hub.Failed:
		colour = a.stdout.red
	case hub.NeedsConfiguration, hub.NeedsTrust, hub.NeedsAuthorization:
		colour = a.stdout.yellow
	}
	runes := []rune(row)
	from := name + 2
	to := from + len(s.String())
	if to > len(runes) {
		return row
	}
	return string(runes[:from]) + colour(string(runes[from:to])) + string(runes[to:])
}
