package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
)

// ServerTable lays out servers in lines of at most width characters: a row for each server, and
// below it its problems and advice.
func ServerTable(f *factory.Factory, servers []control.Server, width int) (lines []string) {
	rows := [][]string{{"SERVER", "STATE", "ERA", "TOOLS", "SINCE", "SOURCE", "DETAIL"}}
	for _, s := range servers {
		rows = append(rows, formatServerRow(s))
	}
	widths := term.ColumnWidths(rows)
	for i, row := range rows {
		text := term.LayOutRow(row, widths)
		if i == 0 {
			lines = append(lines, f.Stdout.Dim(term.Shorten(text, width)))
			continue
		}
		s := servers[i-1]
		lines = append(lines, paintStatus(f, s, term.Shorten(text, width), widths[0]))
		const indent = "    "
		for _, more := range describeProblems(s) {
			for _, text := range term.Wrap(strings.Fields(more), width-len(indent)) {
				lines = append(lines, f.Stdout.Dim(indent+text))
			}
		}
	}
	return lines
}

// formatServerRow returns the cells of a server's row.
func formatServerRow(s control.Server) []string {
	era := s.Revision
	if s.Era != "" {
		era = s.Era + " " + s.Revision
	}
	tools := "-"
	if s.Tools > 0 || s.Status == hub.Ready {
		tools = fmt.Sprint(s.Tools)
	}
	what := term.Line(s.Title)
	if what == "" {
		what = term.Line(s.Origin)
	}
	return []string{term.Line(s.Name), DescribeStatus(s), era, tools, Age(time.Since(s.Since)), term.Line(s.Source), what}
}

// DescribeStatus returns the state of a server, with the time that an install has taken so far.
func DescribeStatus(s control.Server) string {
	if s.Installing.IsZero() {
		return s.Status.String()
	}
	return "installing, " + Seconds(time.Since(s.Installing))
}

// Seconds formats the time of work in progress, such as "41 s" or "3 min 5 s".
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// describeProblems returns the problems of a server, with advice.
func describeProblems(s control.Server) (lines []string) {
	switch {
	case s.Status == hub.Ready, s.Status == hub.Starting:
	case s.Status == hub.Failed, s.Status == hub.NeedsAuthorization,
		s.Status == hub.NeedsLogin && s.Problem != "": // without a problem, its process waits for the login
		lines = append(lines, term.FirstLine(s.Problem))
		if s.Advice != "" {
			lines = append(lines, "→ "+term.Line(s.Advice))
		}
		if s.Next.IsZero() && s.Cause != "" {
			lines = append(lines, term.Line(s.Cause)+"; dowel servers restart "+term.Line(s.Name)+" tries at once")
		}
		if !s.Next.IsZero() {
			lines = append(lines, fmt.Sprintf("attempt %d failed; the next one is at %s", s.Attempt, s.Next.Local().Format(time.TimeOnly)))
		}
	default:
		lines = append(lines, term.Line(s.Cause))
		if s.Advice != "" {
			lines = append(lines, "→ "+term.Line(s.Advice))
		}
	}
	if s.Note != "" {
		lines = append(lines, term.Line(s.Note))
	}
	for _, q := range s.Quarantined {
		lines = append(lines, term.Line(fmt.Sprintf("the %s %s is left out: %s", q.Kind, q.Name, q.Reason)))
	}
	if text := DescribeChanges(s); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// maxNames limits the names in the description of changed definitions.
const maxNames = 5

// DescribeChanges returns a line about the changed definitions of a server, or "" without any.
func DescribeChanges(s control.Server) string {
	var names []string
	for _, c := range s.Changed[:min(len(s.Changed), maxNames)] {
		names = append(names, "the "+c.Words()+" ("+c.Time.Local().Format("2006-01-02 15:04")+")")
	}
	switch more := len(s.Changed) - len(names); {
	case names == nil:
		return ""
	case more > 0:
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return term.Line(fmt.Sprintf("changed: %s; see dowel trust --definitions %s", strings.Join(names, ", "), s.Name))
}

// Age formats a duration in its largest unit, such as "3h".
func Age(d time.Duration) string {
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

// paintStatus colours the state in a row. The state follows the name, which is nameWidth wide.
func paintStatus(f *factory.Factory, s control.Server, row string, nameWidth int) string {
	colour := f.Stdout.Dim
	switch s.Status {
	case hub.Ready:
		colour = f.Stdout.Green
	case hub.Starting:
		colour = f.Stdout.Cyan
	case hub.Failed:
		colour = f.Stdout.Red
	case hub.NeedsConfiguration, hub.NeedsTrust, hub.NeedsAuthorization, hub.NeedsLogin:
		colour = f.Stdout.Yellow
	}
	runes := []rune(row)
	from := nameWidth + 2
	to := from + len(DescribeStatus(s))
	if to > len(runes) {
		return row
	}
	return string(runes[:from]) + colour(string(runes[from:to])) + string(runes[to:])
}
