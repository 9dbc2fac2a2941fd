package files

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// around is the number of context lines before and after a change.
const around = 3

// maxDistance bounds the search for the shortest diff. If more lines differ, the diff replaces all
// lines between the first and the last difference.
const maxDistance = 1000

// diff is the difference between two texts.
type diff struct {
	old, new       []string // lines with their line ends
	changes        []change // in order
	added, removed int
}

// change replaces old[a:aEnd] by new[b:bEnd].
type change struct{ a, aEnd, b, bEnd int }

func diffOf(old, new string) *diff {
	d := &diff{old: strings.SplitAfter(old, "\n"), new: strings.SplitAfter(new, "\n")}
	d.old, d.new = withoutEmpty(d.old), withoutEmpty(d.new)
	from := 0
	for from < min(len(d.old), len(d.new)) && d.old[from] == d.new[from] {
		from++
	}
	a, b := len(d.old), len(d.new)
	for a > from && b > from && d.old[a-1] == d.new[b-1] {
		a, b = a-1, b-1
	}
	for _, c := range findChanges(d.old[from:a], d.new[from:b]) {
		d.changes = append(d.changes, change{c.a + from, c.aEnd + from, c.b + from, c.bEnd + from})
		d.removed += c.aEnd - c.a
		d.added += c.bEnd - c.b
	}
	return d
}

func withoutEmpty(lines []string) []string {
	if last := len(lines) - 1; lines[last] == "" {
		return lines[:last]
	}
	return lines
}

// findChanges returns the fewest changes that turn a into b, by the greedy algorithm of Myers ("An
// O(ND) Difference Algorithm", 1986). x counts lines of a, y lines of b; diagonal k is x - y.
func findChanges(a, b []string) []change {
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	n, m := len(a), len(b)
	most := min(n+m, maxDistance)
	reach := make([]int, 2*most+2) // reach[most+k] is the furthest x on diagonal k
	var trace [][]int              // trace[d] is reach before step d, for the diagonals -d to d
	for d := 0; d <= most; d++ {
		trace = append(trace, slices.Clone(reach[most-d:min(most+d+2, len(reach))]))
		for k := -d; k <= d; k += 2 {
			x := 0
			switch {
			case d == 0:
			case k == -d || k != d && reach[most+k-1] < reach[most+k+1]:
				x = reach[most+k+1]
			default:
				x = reach[most+k-1] + 1
			}
			for x < n && x-k < m && a[x] == b[x-k] {
				x++
			}
			if reach[most+k] = x; x >= n && x-k >= m {
				return traceChanges(trace, n, m)
			}
		}
	}
	return []change{{0, n, 0, m}}
}

// traceChanges follows the trace from the end (x, y) back to the start, and joins adjacent changes.
func traceChanges(trace [][]int, x, y int) (changes []change) {
	for d := len(trace) - 1; d > 0; d-- {
		before := trace[d] // diagonal k is at k+d
		k := x - y
		from := k - 1
		if k == -d || k != d && before[k-1+d] < before[k+1+d] {
			from = k + 1
		}
		startX := before[from+d]
		startY := startX - from
		step := change{startX, startX, startY, startY + 1} // an added line
		if from == k-1 {
			step = change{startX, startX + 1, startY, startY} // a removed line
		}
		if last := len(changes) - 1; last >= 0 && changes[last].a == step.aEnd && changes[last].b == step.bEnd {
			changes[last].a, changes[last].b = step.a, step.b
		} else {
			changes = append(changes, step)
		}
		x, y = startX, startY
	}
	slices.Reverse(changes)
	return changes
}

// writeUnified returns the unified diff, or "" if the texts are the same.
func (d *diff) writeUnified(name string) string {
	if len(d.changes) == 0 {
		return ""
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' }) {
		name = strings.Trim(strconv.Quote(name), `"`)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- a/%s\n+++ b/%s\n", name, name)
	for i := 0; i < len(d.changes); {
		end := i + 1
		for end < len(d.changes) && d.changes[end].a-d.changes[end-1].aEnd <= 2*around {
			end++
		}
		d.writeHunk(&b, d.changes[i:end])
		i = end
	}
	return b.String()
}

// writeHunk writes adjacent changes as one hunk with context.
func (d *diff) writeHunk(b *strings.Builder, changes []change) {
	first, last := changes[0], changes[len(changes)-1]
	lead := min(around, first.a)
	end := min(last.aEnd+around, len(d.old))
	fmt.Fprintf(b, "@@ -%s +%s @@\n", formatSpan(first.a-lead, end), formatSpan(first.b-lead, end+last.bEnd-last.aEnd))
	at := first.a - lead
	for _, c := range changes {
		writeLines(b, ' ', d.old[at:c.a])
		writeLines(b, '-', d.old[c.a:c.aEnd])
		writeLines(b, '+', d.new[c.b:c.bEnd])
		at = c.aEnd
	}
	writeLines(b, ' ', d.old[at:end])
}

// formatSpan formats the range of lines [from, end) for the header of a hunk.
func formatSpan(from, end int) string {
	switch n := end - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}

func writeLines(b *strings.Builder, op byte, lines []string) {
	for _, line := range lines {
		b.WriteByte(op)
		b.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
