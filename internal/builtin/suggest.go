package builtin

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// suggest says what somebody may have meant who wrote a name that is not known.
func suggest(name string, known []string) string {
	nearest, least := "", max(len(name)/2, 1)+1
	for _, k := range known {
		if d := near.Distance(strings.ToLower(name), k); d < least {
			nearest, least = k, d
		}
	}
	if nearest != "" {
		return fmt.Sprintf("did you mean %s?", nearest)
	}
	return "there are " + strings.Join(known, ", ")
}
