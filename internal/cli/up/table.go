package up

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/internal/term"
)

// group is the part of the table in which a server is. Parts that concern the user come first.
type group int

const (
	failedGroup group = iota
	needyGroup
	startingGroup
	readyGroup
	idleGroup
)

func groupOf(s control.Server) group {
	switch s.Status {
	case hub.Failed:
		return failedGroup
	case hub.Starting:
		if s.Problem != "" && s.Attempt > 0 {
			return failedGroup // another attempt, which would make the row jump
		}
		return startingGroup
	case hub.Ready:
		return readyGroup
	case hub.Stopped, hub.Disabled, hub.Removed:
		return idleGroup
	}
	return needyGroup
}

// position matches the position in a file that a cause begins with. It would take the room of the
// cause; dowel status shows it.
var position = lazyregexp.New(`^\S*[/\\]\S+:\d+:\d+: `)

// causePrefix matches the beginning of a cause that is left out if its line is too short, since the
// rest tells more.
var causePrefix = lazyregexp.New(`^(the process ended \([^)]*\)|(env|headers)\.\S+): `)

// cause returns the reason for the state of a server in a failed or needy group, and advice.
func cause(s control.Server) (reason, advice string) {
	reason = term.FirstLine(s.Problem)
	if reason == "" {
		reason = position().ReplaceAllString(term.Line(s.Cause), "")
	}
	return reason, term.Line(s.Advice)
}

// sortServers sorts servers by their group. Servers with the same cause follow each other.
func sortServers(all []control.Server) {
	first := map[string]int{}
	for i, s := range all {
		if reason, _ := cause(s); first[reason] == 0 {
			first[reason] = i + 1
		}
	}
	order := func(s control.Server) int {
		if g := groupOf(s); g != failedGroup && g != needyGroup {
			return 0
		}
		reason, _ := cause(s)
		return first[reason]
	}
	slices.SortStableFunc(all, func(a, b control.Server) int {
		if d := groupOf(a) - groupOf(b); d != 0 {
			return int(d)
		}
		return order(a) - order(b)
	})
}

// formatTable lays out servers in lines of at most width characters, at most rows of them: a line
// for each server, its cause and advice once for all servers that have them, and a summary. A cause
// that is too long for its line has lines of its own if rows suffice for that, else it is cut.
// Lines of servers that work are left out first.
func (v *statusView) formatTable(all []control.Server, width, rows int) []string {
	all = slices.Clone(all)
	sortServers(all)
	lines := v.formatServers(all, width, true)
	if len(lines) > rows-1 {
		lines = v.formatServers(all, width, false)
	}
	return append(cutLines(lines, rows-1, width), v.Stdout.Bold(term.Shorten(summarize(all), width)))
}

// formatServers returns the lines of sorted servers. wholeCauses gives causes that are too long for
// their line lines of their own.
func (v *statusView) formatServers(all []control.Server, width int, wholeCauses bool) (lines []string) {
	const maxName = 32
	nameWidth, stateWidth := 0, 0
	for _, s := range all {
		nameWidth = max(nameWidth, min(term.TextWidth(term.Line(s.Name)), maxName))
		stateWidth = max(stateWidth, term.TextWidth(describeState(s)))
	}
	addBelow := func(mark, text string) {
		for _, part := range term.Wrap(strings.Fields(text), width-term.TextWidth(mark)) {
			lines = append(lines, v.Stdout.Dim(term.Shorten(mark+part, width)))
			mark = strings.Repeat(" ", term.TextWidth(mark))
		}
	}
	for i, s := range all {
		what, advice := v.describeServer(all, i)
		below, whole, room := "", "", width-nameWidth-stateWidth-4
		if g := groupOf(s); (g == failedGroup || g == needyGroup) && term.TextWidth(what) > room {
			short := causePrefix().ReplaceAllString(what, "")
			if wholeCauses && term.TextWidth(short) > room {
				short, below = "", what
			}
			if strings.Contains(what, "://") {
				whole = "the whole address: dowel status " + term.Line(s.Name)
			}
			what = short
		}
		name := term.Shorten(term.Line(s.Name), nameWidth)
		state := describeState(s)
		row := fmt.Sprintf("%-*s  %-*s  %s", nameWidth, name, stateWidth, state, what)
		row = strings.TrimRight(term.Shorten(row, width), " ")
		lines = append(lines, v.paintState(s, row, nameWidth+2, term.TextWidth(state)))
		addBelow("    ", below)
		addBelow("    ", whole)
		addBelow("    → ", advice)
	}
	return lines
}

// describeServer returns the rest of the row of server i of all, and the advice below it.
func (v *statusView) describeServer(all []control.Server, i int) (what, advice string) {
	s := all[i]
	switch groupOf(s) {
	case readyGroup:
		what = display.Plural(s.Tools, "tool")
		for _, note := range []string{s.Note, display.DescribeChanges(s)} {
			if note != "" {
				what += " · " + term.Line(note)
			}
		}
		if n := len(s.Quarantined); n > 0 {
			what += fmt.Sprintf(" · %d left out: dowel status %s", n, term.Line(s.Name))
		}
		return what, ""
	case failedGroup, needyGroup:
		what, advice = cause(s)
		if i > 0 && groupOf(all[i-1]) == groupOf(s) {
			if before, same := cause(all[i-1]); before == what && same == advice && what != "" {
				what = "the same"
			}
		}
		if i+1 < len(all) && groupOf(all[i+1]) == groupOf(s) {
			if after, same := cause(all[i+1]); same == advice && (after == what || what == "the same") {
				advice = "" // below the last one
			}
		}
		return what, advice
	}
	if s.Status == hub.Disabled {
		return "dowel servers enable " + term.Line(s.Name), ""
	}
	return term.Line(s.Cause), ""
}

// describeState returns the state of a server in a few words.
func describeState(s control.Server) string {
	if groupOf(s) == failedGroup {
		return hub.Failed.String()
	}
	return display.DescribeStatus(s)
}

// paintState colours the state in a row, which begins at from and has n characters.
func (v *statusView) paintState(s control.Server, row string, from, n int) string {
	colour := map[group]func(string) string{failedGroup: v.Stdout.Red, needyGroup: v.Stdout.Yellow, startingGroup: v.Stdout.Cyan,
		readyGroup: v.Stdout.Green, idleGroup: v.Stdout.Dim}[groupOf(s)]
	runes := []rune(row)
	from = min(from, len(runes))
	to := min(from+n, len(runes))
	return string(runes[:from]) + colour(string(runes[from:to])) + string(runes[to:])
}

// summarize counts the servers by their groups.
func summarize(all []control.Server) string {
	counts, installing := map[group]int{}, 0
	for _, s := range all {
		if groupOf(s) == startingGroup && !s.Installing.IsZero() {
			installing++
			continue
		}
		counts[groupOf(s)]++
	}
	var parts []string
	add := func(g group, one, several string) {
		if n := counts[g]; n == 1 {
			parts = append(parts, "1 "+one)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %s", n, several))
		}
	}
	add(readyGroup, "ready", "ready")
	add(startingGroup, "starting", "starting")
	if installing > 0 {
		parts = append(parts, fmt.Sprintf("%d installing", installing))
	}
	add(failedGroup, "failed", "failed")
	add(needyGroup, "needs you", "need you")
	add(idleGroup, "off", "off")
	if parts == nil {
		return "no servers"
	}
	return strings.Join(parts, ", ")
}

// cutLines shortens lines to rows. If it leaves lines out, the last line tells how many, in at most
// width characters.
func cutLines(lines []string, rows, width int) []string {
	switch {
	case len(lines) <= rows:
		return lines
	case rows < 1:
		return nil
	}
	return append(lines[:rows-1:rows-1], term.Shorten(fmt.Sprintf("… %d more lines: dowel status", len(lines)-rows+1), width))
}
