package builtin

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
)

// suggestName returns a suggestion for an unknown name, or "".
func suggestName(name string, known []string) string {
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
