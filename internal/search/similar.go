package search

import (
	"slices"
	"strings"
)

const prefixWeight = 0.7

// editWeight is the weight of a correction by the number of typing errors.
var editWeight = [...]float64{1: 0.75, 2: 0.5}

// similarTerms returns terms that a stem without a term may mean: terms that begin with it, else
// terms with the fewest typing errors. It takes the first letter as correct.
func (ix *Index) similarTerms(s string) (all []alternative) {
	if len(s) < 3 {
		return nil
	}
	for _, other := range ix.termsWithPrefix(s) {
		all = append(all, alternative{terms: []int{ix.terms[other]}, weight: prefixWeight})
	}
	if len(s) < 4 || len(all) > 0 {
		return all[:min(len(all), maxNear)]
	}
	letters := []rune(s)
	least := 2
	if len(letters) < 8 {
		least = 1
	}
	for _, other := range ix.termsWithPrefix(string(letters[:1])) {
		n := editDistance(letters, []rune(other), least)
		if n < least { // drop candidates with more errors
			least, all = n, nil
		}
		if n <= least {
			all = append(all, alternative{terms: []int{ix.terms[other]}, weight: editWeight[n]})
		}
	}
	return all[:min(len(all), maxNear)]
}

// termsWithPrefix returns the terms with a prefix, in their order.
func (ix *Index) termsWithPrefix(prefix string) []string {
	from, _ := slices.BinarySearch(ix.sorted, prefix)
	to := from
	for to < len(ix.sorted) && strings.HasPrefix(ix.sorted[to], prefix) {
		to++
	}
	return ix.sorted[from:to]
}

// editDistance returns the number of insertions, deletions, replacements and swaps of neighbours
// between a and b, or a number above most if there are more.
func editDistance(a, b []rune, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	before, last, row := rows[0], rows[1], rows[2]
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			row[j] = last[j-1]
			if a[i-1] != b[j-1] {
				row[j] = 1 + min(last[j-1], last[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[j] = min(row[j], 1+before[j-2])
				}
			}
			least = min(least, row[j])
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
