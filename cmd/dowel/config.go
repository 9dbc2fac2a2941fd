package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/config"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and explain your configuration",
		Long: `Your servers stand in dowel.json (or .jsonc, .yaml, .toml) in your configuration folder, and in that of a project in its
folder, under mcpServers as everybody writes it; .mcp.json of a project is read too. The project's entry wins over yours of
the same name.`,
	}
	cmd.AddCommand(a.checkCommand(), a.explainCommand())
	return cmd
}

// errProblems says that there are errors in the configuration, which were shown.
type errProblems int

func (n errProblems) Error() string {
	if n == 1 {
		return "there is one error in the configuration"
	}
	return fmt.Sprintf("there are %d errors in the configuration", int(n))
}

// problemLine is a problem as a program reads it.
type problemLine struct {
	Severity string `json:"severity"`
	File     string `json:"file"`
	Line     int    `json:"line,omitzero"`
	Column   int    `json:"column,omitzero"`
	Server   string `json:"server,omitzero"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitzero"`
}

func (a *app) checkCommand() *cobra.Command {
	var where places
	cmd := &cobra.Command{
		Use: "check", Short: "Show every problem of the configuration files, with file:line:column", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return a.check(where)
		},
	}
	where.register(cmd)
	return cmd
}

func (a *app) check(where places) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	set := config.Load(o)
	problems := slices.Clone(set.Problems)
	for _, s := range set.Servers {
		if s.Valid() {
			_, more := s.Resolve(set.Variables)
			problems = append(problems, more...)
		}
	}
	_, more := set.Gateway.Resolve(set.Variables)
	errors := 0
	for _, p := range append(problems, more...) {
		if p.Severity == config.Error {
			errors++
		}
		a.problem(p)
	}
	switch {
	case errors > 0:
		return errProblems(errors)
	case len(problems) == 0 && !a.json:
		fmt.Fprintf(a.stdout, "%d servers, no problems.\n", len(set.Servers))
	}
	return nil
}

func (a *app) problem(p config.Problem) {
	if a.json {
		encodeLine(a.stdout, problemLine{p.Severity.String(), p.Path, p.Line, p.Column, p.Server, p.Message, p.Hint})
		return
	}
	fmt.Fprintln(a.stdout, a.stdout.clean(p.String()))
}

func (a *app) explainCommand() *cobra.Command {
	var where places
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Show each value of a server, where it came from, and what its variables became",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.began = true
			return a.explain(where, args[0])
		},
	}
	where.register(cmd)
	return cmd
}

// valueLine is a value as a program reads it.
type valueLine struct {
	Field   string   `json:"field"`
	Value   string   `json:"value"`
	Written string   `json:"written,omitzero"`
	At      string   `json:"at"`
	From    []string `json:"from,omitempty"`
}

func (a *app) explain(where places, name string) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	set := config.Load(o)
	e, ok := set.Explain(name)
	if !ok {
		var names []string
		for _, s := range set.Servers {
			names = append(names, s.Name)
		}
		return usagef("no server of the configuration is called %s%s", name, suggestion(name, names))
	}
	if a.json {
		return a.value(explanation(e))
	}
	fmt.Fprintf(a.stdout, "%s, of %s\n", a.stdout.bold(line(name)), e.Server.At)
	for _, v := range e.Values {
		text := "  " + line(v.Field) + " = " + line(v.Value)
		if len(v.From) > 0 {
			text += a.stdout.dim("  from " + line(v.Written) + " (" + line(strings.Join(v.From, ", ")) + ")")
		}
		fmt.Fprintln(a.stdout, text)
	}
	for _, s := range e.Shadowed {
		fmt.Fprintln(a.stdout, "  shadows the one of "+s.At.String())
	}
	for _, p := range e.Problems {
		a.problem(p)
	}
	return nil
}

func explanation(e config.Explanation) map[string]any {
	values, shadowed, problems := []valueLine{}, []string{}, []string{}
	for _, v := range e.Values {
		values = append(values, valueLine{v.Field, v.Value, v.Written, v.At.String(), v.From})
	}
	for _, s := range e.Shadowed {
		shadowed = append(shadowed, s.At.String())
	}
	for _, p := range e.Problems {
		problems = append(problems, p.String())
	}
	return map[string]any{"server": e.Server.Name, "at": e.Server.At.String(), "values": values, "shadows": shadowed, "problems": problems}
}
