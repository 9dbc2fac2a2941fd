package main

import (
	"fmt"
	"slices"
	"strings"
)

// suggestion is what to add to the complaint about an unknown word: the known one that was meant, or all of them.
func suggestion(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	const enough = 12
	switch n := len(known); {
	case n == 0:
		return ""
	case n > enough:
		return fmt.Sprintf("; there are %s and %d others", strings.Join(known[:enough], ", "), n-enough)
	}
	return "; there " + isAre(len(known)) + " " + strings.Join(known, ", ")
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// nearest returns the known word that looks most like word, "" where none looks like it.
func nearest(word string, known []string) string {
	best, bound := "", (len(word)+1)/3
	for _, k := range known {
		if d := distance(fold(word), fold(k)); d <= bound {
			best, bound = k, d-1
		}
	}
	return best
}

// fold makes words equal that differ in case and in what joins their parts.
func fold(word string) []rune {
	return []rune(strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word)))
}

// distance counts the characters to insert, delete, replace or swap with their neighbour to make b of a.
func distance(a, b []rune) int {
	var before []int // the row before the last
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = slices.Min([]int{last[j] + cost, last[j+1] + 1, row[j] + 1})
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
