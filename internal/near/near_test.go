package near_test

import (
	"testing"

	"github.com/dowel-mcp/dowel/internal/near"
)

func TestGuessable(t *testing.T) {
	for word, want := range map[string]bool{"": false, "x": false, "ä": false, "[": false, "ls": true, "äö": true} {
		if near.Guessable(word) != want {
			t.Errorf("%q: want %v", word, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "abc", 3}, {"echo", "echo", 0}, {"ecco", "echo", 1}, {"eho", "echo", 1}, {"echoo", "echo", 1},
		{"ehco", "echo", 1}, {"comand", "command", 1}, {"abc", "cba", 2}, {"naïve", "naive", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := near.Distance(c.a, c.b); got != c.want || near.Distance(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
