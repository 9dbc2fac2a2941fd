// Package suggest finds the known word that a user meant by an unknown one, and words the hint that
// an error message ends with.
package suggest

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// Hint returns the end of an error message about an unknown word: a suggestion if a known word is
// similar, else a list of the known words, at most 12. It is "" if known is empty.
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

// IsAre returns the form of "to be" for n things.
func IsAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Nearest returns the known word that is most similar to word, or "" if none is similar. Case,
// hyphens, underscores and spaces do not count.
func Nearest(word string, known []string) string {
	best, bound := "", (len(word)+1)/3
	for _, k := range known {
		if d := near.Distance(normalizeWord(word), normalizeWord(k)); d <= bound {
			best, bound = k, d-1
		}
	}
	return best
}

// normalizeWord returns word in lower case, without hyphens, underscores and spaces.
func normalizeWord(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// ForFlag returns a suggestion as the end of an error message, or "" if no known word is similar.
func ForFlag(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
