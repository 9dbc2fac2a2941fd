// Package suggest finds the known word that a user meant by an unknown one, and words the hint that
// an error message ends with.
package suggest

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// Hint is what to add to the complaint about an unknown word: the known one that was meant, or all of them.
func Hint(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	const enough = 12
	switch n := len(known); {
	case n == 0:
		return ""
	case n > enough:
		return fmt.Sprintf("; there are %s and %d others", strings.Join(known[:enough], ", "), n-enough)
	}
	return "; there " + IsAre(len(known)) + " " + strings.Join(known, ", ")
}

func IsAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Nearest returns the known word that looks most like word, "" where none looks like it.
func Nearest(word string, known []string) string {
	best, bound := "", (len(word)+1)/3
	for _, k := range known {
		if d := near.Distance(normalizeWord(word), normalizeWord(k)); d <= bound {
			best, bound = k, d-1
		}
	}
	return best
}

// normalizeWord makes words equal that differ in case and in what joins their parts.
func normalizeWord(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// ForFlag is the known word that looks most like another, as a question.
func ForFlag(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
