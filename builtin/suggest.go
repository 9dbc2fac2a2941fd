package builtin

import (
	"fmt"
	"strings"
)

// suggest says what somebody may have meant who wrote a name that is not known.
func suggest(name string, known []string) string {
	nearest, least := "", max(len(name)/2, 1)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least {
			nearest, least = k, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	return "there are " + strings.Join(known, ", ")
}

// distance is how many letters must be added, removed, replaced or swapped with their neighbour to make a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
