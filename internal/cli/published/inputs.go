package published

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/install"
	"github.com/dowel-mcp/dowel/internal/term"
)

// parseValues reads the values of --set.
func parseValues(settings []string) (install.Values, error) {
	v := install.Values{}
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("--set %s: want NAME=VALUE", setting)
		}
		v[name] = append(v[name], value)
	}
	return v, nil
}

// askValues asks for the missing inputs on a terminal, and fails without one.
func (a *addition) askValues(ctx context.Context, p *install.Plan, missing []install.Input, values install.Values) error {
	if len(missing) == 0 {
		return nil
	}
	if term.Terminal(a.f.Stdin) == nil || a.f.JSON || a.dry {
		var lines []string
		for _, in := range missing {
			lines = append(lines, fmt.Sprintf("--set %s=… (%s)", in.Name, describeInput(in)))
		}
		return exit.Usagef("%s needs values: %s", p.Name, strings.Join(lines, ", "))
	}
	for _, in := range missing {
		fmt.Fprintf(a.f.Stdout, "%s: %s\n", a.f.Stdout.Bold(term.RevealLine(in.Name)), term.RevealLine(describeInput(in)))
		for len(values[in.Name]) == 0 {
			fmt.Fprint(a.f.Stdout, "  value: ")
			answer, err := a.in.Next(ctx)
			if errors.Is(err, io.EOF) {
				return exit.Usagef("%s needs a value for %s", p.Name, in.Name)
			}
			if err != nil {
				return err
			}
			answer = strings.TrimSpace(answer)
			if err := in.Check(answer); err != nil {
				fmt.Fprintln(a.f.Stdout, "  "+term.Line(err.Error()))
				continue
			}
			values[in.Name] = []string{answer}
		}
	}
	return nil
}

// describeInput describes the value of an input in a line.
func describeInput(in install.Input) string {
	text := strings.TrimRight(in.Description, ".")
	add := func(more string) {
		if text != "" {
			text += "; "
		}
		text += more
	}
	switch {
	case len(in.Choices) > 0:
		add("one of " + strings.Join(in.Choices, ", "))
	case in.Type != "" && in.Type != "string":
		add("a " + in.Type)
	}
	if in.Example != "" {
		add("such as " + in.Example)
	}
	if text == "" {
		return "a value"
	}
	return text
}

// secretNotes says which variables the user must set, and where typed secrets are.
func secretNotes(p *install.Plan, values install.Values, typed *secretFiles) (notes []string) {
	for _, in := range p.Inputs {
		if in.Secret && values.Get(in.Name) == "${"+in.Variable()+"}" {
			notes = append(notes, fmt.Sprintf("set the variable %s in the environment of dowel (%s): the secret stays out of the file", in.Variable(), describeInput(in)))
		}
	}
	if typed != nil {
		notes = append(notes, fmt.Sprintf("only you can read %s, which has %s; change a secret there", tildePath(typed.folder), strings.Join(slices.Sorted(maps.Keys(typed.secrets)), " and ")))
	}
	return notes
}
