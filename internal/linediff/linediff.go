// Package linediff compares and merges texts line by line.
package linediff

import (
	"slices"
	"strings"
)

// maxDistance bounds the search for the shortest diff. If more lines differ, the diff replaces all
// lines between the first and the last difference.
const maxDistance = 1000

// Change replaces the lines old[Old:OldEnd] by new[New:NewEnd].
type Change struct{ Old, OldEnd, New, NewEnd int }

// SplitLines splits a text behind its line ends. The last line may have none.
func SplitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		return lines[:last]
	}
	return lines
}

// FindChanges returns the changes that turn old into new, in order. They are the fewest unless the
// texts differ in more than 1,000 lines.
func FindChanges(old, new []string) (all []Change) {
	from := 0
	for from < min(len(old), len(new)) && old[from] == new[from] {
		from++
	}
	a, b := len(old), len(new)
	for a > from && b > from && old[a-1] == new[b-1] {
		a, b = a-1, b-1
	}
	for _, c := range findChanges(old[from:a], new[from:b]) {
		all = append(all, Change{c.Old + from, c.OldEnd + from, c.New + from, c.NewEnd + from})
	}
	return all
}

// findChanges returns the fewest changes that turn a into b, by the greedy algorithm of Myers ("An
// O(ND) Difference Algorithm", 1986). x counts lines of a, y lines of b; diagonal k is x - y.
func findChanges(a, b []string) []Change {
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
	return []Change{{0, n, 0, m}}
}

// traceChanges follows the trace from the end (x, y) back to the start, and joins adjacent changes.
func traceChanges(trace [][]int, x, y int) (changes []Change) {
	for d := len(trace) - 1; d > 0; d-- {
		before := trace[d] // diagonal k is at k+d
		k := x - y
		from := k - 1
		if k == -d || k != d && before[k-1+d] < before[k+1+d] {
			from = k + 1
		}
		startX := before[from+d]
		startY := startX - from
		step := Change{startX, startX, startY, startY + 1} // an added line
		if from == k-1 {
			step = Change{startX, startX + 1, startY, startY} // a removed line
		}
		if last := len(changes) - 1; last >= 0 && changes[last].Old == step.OldEnd && changes[last].New == step.NewEnd {
			changes[last].Old, changes[last].New = step.Old, step.New
		} else {
			changes = append(changes, step)
		}
		x, y = startX, startY
	}
	slices.Reverse(changes)
	return changes
}
