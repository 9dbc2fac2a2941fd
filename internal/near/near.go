// Package near tells how far two words are apart, for those who guess what somebody meant.
package near

import "unicode/utf8"

// Distance is how many characters must be added, removed, replaced or swapped with their neighbour to make a into b. It takes
// time in proportion to the product of their lengths.
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

// Guessable reports whether what somebody meant can be told from a word: one of a single character is near to everything short.
func Guessable(word string) bool { return utf8.RuneCountInString(word) > 1 }
