// Package near compares words, for suggesting the name that a user or a model probably meant.
//
// \tif near.Guessable(name) && near.Distance(name, known) <= 1 { suggest(known) }
package near

import (
	"strings"
	"unicode/utf8"
)

// Distance returns the number of characters that must be added, removed, replaced, or swapped with
// their neighbour to turn a into b. Its time is proportional to the product of the lengths.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, last, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(from); i++ {
		row[0] = i
		for j := 1; j <= len(to); j++ {
			replace := last[j-1]
			if from[i-1] != to[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(to)]
}

// Guessable reports whether a word is long enough for a guess. A single character is similar to
// every short word.
func Guessable(word string) bool { return utf8.RuneCountInString(word) > 1 }

// FindVariant returns the index of the only one of n names that equals written except for case, the
// separators between words, or a missing prefix before __. It returns -1 if no name or several
// names match.
func FindVariant(written string, n int, name func(i int) string) int {
	found := -1
	for i := range n {
		full := name(i)
		_, bare, _ := strings.Cut(full, "__")
		if normalizeWords(full) != normalizeWords(written) && normalizeWords(bare) != normalizeWords(written) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// normalizeWords returns name in lower case with uniform separators.
func normalizeWords(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("_-./: ", r) }), "_")
}
