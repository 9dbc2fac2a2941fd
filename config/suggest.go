package config

import (
	"fmt"
	"strings"
)

// suggest asks whether the nearest of the known names was meant; it is empty where none is near.
func suggest(name string, known []string) string {
	if k := nearest(name, known); k != "" {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return ""
}

// choose is suggest, or the list of all there is.
func choose(name string, known []string) string {
	if s := suggest(name, known); s != "" {
		return s
	}
	return "write one of " + strings.Join(known, ", ")
}

func nearest(name string, known []string) string {
	if len(name) > 64 { // no key is that long, and the distance takes time
		return ""
	}
	best, least := "", max(len(name)/3, 1)+1
	for _, k := range known {
		if len(name)-len(k) > least || len(k)-len(name) > least {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
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
