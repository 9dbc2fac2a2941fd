package importing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
)

// DescribeTarget returns the command or the URL of a server, without secrets. Its text is foreign.
func (f Finding) DescribeTarget() string {
	masked := f.Masked()
	if masked.Command == "" {
		return masked.URL
	}
	return strings.Join(append([]string{masked.Command}, masked.Args...), " ")
}

// DescribeNotes returns what the user should know before a server is added, in a few words each.
// Their texts are foreign.
func (f Finding) DescribeNotes(o config.Options) (notes []string) {
	if f.Disabled {
		notes = append(notes, "disabled")
	}
	if f.NewName != f.Name {
		notes = append(notes, "becomes "+f.NewName)
	}
	notes = append(notes, f.DescribeRisks()...)
	if missing := f.missingVariables(o); len(missing) > 0 {
		notes = append(notes, "needs "+strings.Join(missing, ", "))
	}
	return notes
}

// DescribeRisks describes the permissions that a server would take over from the other tool.
func (f Finding) DescribeRisks() (notes []string) {
	switch n := len(f.AlwaysAllow); {
	case slices.Contains(f.AlwaysAllow, "*"):
		notes = append(notes, "all its tools run without asking")
	case n == 1:
		notes = append(notes, "runs "+f.AlwaysAllow[0]+" without asking")
	case n > 1:
		notes = append(notes, fmt.Sprintf("runs %d tools without asking", n))
	}
	if f.HeadersHelper != "" {
		notes = append(notes, "runs a command for its headers")
	}
	return notes
}

// missingVariables returns the variables of a server that have no value here.
func (f Finding) missingVariables(o config.Options) (names []string) {
	_, problems := f.Resolve(o.Variables())
	for _, p := range problems {
		if p.Variable != "" && !slices.Contains(names, p.Variable) {
			names = append(names, p.Variable)
		}
	}
	return names
}
