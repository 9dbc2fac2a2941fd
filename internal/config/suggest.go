package config

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
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
	if len(name) > 64 || !near.Guessable(name) { // no key is that long, and the distance takes time
		return ""
	}
	best, least := "", max(len(name)/3, 1)+1
	for _, k := range known {
		if len(name)-len(k) > least || len(k)-len(name) > least {
			continue
		}
		if d := near.Distance(strings.ToLower(name), strings.ToLower(k)); d < least || d == least && best != "" && k < best {
			best, least = k, d
		}
	}
	return best
}
