package toolargs

import (
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// CheckPrompt checks the names of the arguments for a prompt. A usage error lists all missing and
// unknown arguments.
func CheckPrompt(p mcp.Prompt, given map[string]string) error {
	var errs []error
	var known []string
	declared := map[string]bool{}
	for _, argument := range p.Arguments {
		known, declared[argument.Name] = append(known, argument.Name), true
		if _, ok := given[argument.Name]; argument.Required && !ok {
			about := ""
			if argument.Description != "" {
				about = ": " + term.FirstLine(argument.Description)
			}
			errs = append(errs, fmt.Errorf("argument %s is missing%s", argument.Name, about))
		}
	}
	for key := range given {
		if !declared[key] {
			errs = append(errs, fmt.Errorf("there is no argument %s%s", key, suggest.Hint(key, known)))
		}
	}
	if errs == nil {
		return nil
	}
	return exit.UsageError{Err: errors.Join(errs...)}
}
