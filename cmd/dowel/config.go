package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/spf13/cobra"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and explain your configuration",
		Long: `Your servers stand in dowel.json (or .jsonc, .yaml, .toml) in your configuration folder, and in that of a project in its
folder, under mcpServers as everybody writes it; .mcp.json of a project is read too. The project's entry wins over yours of
the same name. check shows what is wrong with the files and which were read, explain where the values of a server come from.`,
		Example: `  dowel config check
  dowel config check --json --project .`,
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
		Example: `  dowel config check
  dowel config check --json | jq .message`,
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
	problems := set.Check()
	errors := 0
	for _, p := range problems {
		if p.Severity == config.Error {
			errors++
		}
		a.problem(p)
	}
	if !a.json {
		a.summary(set, problems)
	}
	if errors > 0 {
		return errProblems(errors)
	}
	return nil
}

// summary says which files were read, or where they were looked for.
func (a *app) summary(set *config.Set, problems []config.Problem) {
	var read, missing []string
	for _, f := range set.Files {
		if f.Missing {
			missing = append(missing, f.Path)
		} else {
			read = append(read, f.Path)
		}
	}
	if read == nil {
		fmt.Fprintln(a.stdout, "There is no configuration file. Looked for:")
		read = missing
	} else {
		verdict := "no problems"
		if len(problems) > 0 {
			verdict = count(len(problems), "problem")
		}
		fmt.Fprintf(a.stdout, "%s, %s. Read:\n", count(len(set.Servers), "server"), verdict)
	}
	for _, path := range read {
		fmt.Fprintln(a.stdout, "  "+line(path))
	}
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
		Example: `  dowel config explain github
  dowel config explain github --json | jq '.values[].from'`,
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
		text := "  " + line(v.Field) + " = " + quoted(v.Value)
		switch {
		case len(v.From) > 0 && v.Written == "":
			text += a.stdout.dim("  from " + line(strings.Join(v.From, ", ")))
		case len(v.From) > 0:
			text += a.stdout.dim("  from " + quoted(v.Written) + " (" + line(strings.Join(v.From, ", ")) + ")")
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

// quoted is a value as one word: in quotes where it would not be one otherwise.
func quoted(value string) string {
	plain := value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`", r)
	})
	if plain {
		return line(value)
	}
	return strconv.QuoteToGraphic(value)
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
