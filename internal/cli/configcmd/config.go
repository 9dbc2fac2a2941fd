// Package configcmd is dowel config: it checks the configuration and explains how the entry of a
// server comes about.
package configcmd

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and explain your configuration",
		Long: `Your servers stand in dowel.json (or .jsonc, .yaml, .toml) in your configuration folder, and in that of a project in its
folder, under mcpServers as everybody writes it; .mcp.json of a project is read too. The project's entry wins over yours of
the same name. check shows what is wrong with the files and which were read, explain where the values of a server come from.`,
		Example: `  dowel config check
  dowel config check --json --project .`,
	}
	cmd.AddCommand(checkCommand(f), explainCommand(f))
	return cmd
}

// problemsError says that there are errors in the configuration, which were shown.
type problemsError int

func (n problemsError) Error() string {
	if n == 1 {
		return "there is one error in the configuration"
	}
	return fmt.Sprintf("there are %d errors in the configuration", int(n))
}

func checkCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	cmd := &cobra.Command{
		Use: "check", Short: "Show every problem of the configuration files, with file:line:column", Args: cobra.NoArgs,
		Example: `  dowel config check
  dowel config check --json | jq .message`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return checkConfig(f, where)
		},
	}
	where.AddFlags(cmd)
	return cmd
}

func checkConfig(f *factory.Factory, where factory.Places) error {
	o, err := where.ConfigOptions()
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
		display.WriteProblem(f, p)
	}
	if !f.JSON {
		writeSummary(f, set, problems)
	}
	if errors > 0 {
		return problemsError(errors)
	}
	return nil
}

// writeSummary says which files were read, or where they were looked for.
func writeSummary(f *factory.Factory, set *config.Set, problems []config.Problem) {
	var read, missing []string
	for _, file := range set.Files {
		if file.Missing {
			missing = append(missing, file.Path)
		} else {
			read = append(read, file.Path)
		}
	}
	if read == nil {
		fmt.Fprintln(f.Stdout, "There is no configuration file. Looked for:")
		read = missing
	} else {
		verdict := "no problems"
		if len(problems) > 0 {
			verdict = display.Plural(len(problems), "problem")
		}
		fmt.Fprintf(f.Stdout, "%s, %s. Read:\n", display.Plural(len(set.Servers), "server"), verdict)
	}
	for _, path := range read {
		fmt.Fprintln(f.Stdout, "  "+term.Line(path))
	}
}

func explainCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Show each value of a server, where it came from, and what its variables became",
		Args: cobra.ExactArgs(1),
		Example: `  dowel config explain github
  dowel config explain github --json | jq '.values[].from'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return explainServer(f, where, args[0])
		},
	}
	where.AddFlags(cmd)
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

func explainServer(f *factory.Factory, where factory.Places, name string) error {
	o, err := where.ConfigOptions()
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
		return exit.Usagef("no server of the configuration is called %s%s", name, suggest.Hint(name, names))
	}
	if f.JSON {
		return f.WriteValue(encodeExplanation(e))
	}
	fmt.Fprintf(f.Stdout, "%s, of %s\n", f.Stdout.Bold(term.Line(name)), e.Server.At)
	for _, v := range e.Values {
		text := "  " + term.Line(v.Field) + " = " + quoteValue(v.Value)
		switch {
		case len(v.From) > 0 && v.Written == "":
			text += f.Stdout.Dim("  from " + term.Line(strings.Join(v.From, ", ")))
		case len(v.From) > 0:
			text += f.Stdout.Dim("  from " + quoteValue(v.Written) + " (" + term.Line(strings.Join(v.From, ", ")) + ")")
		}
		fmt.Fprintln(f.Stdout, text)
	}
	for _, s := range e.Shadowed {
		fmt.Fprintln(f.Stdout, "  shadows the one of "+s.At.String())
	}
	for _, p := range e.Problems {
		display.WriteProblem(f, p)
	}
	return nil
}

// quoteValue is a value as one word: in quotes where it would not be one otherwise.
func quoteValue(value string) string {
	plain := value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`", r)
	})
	if plain {
		return term.Line(value)
	}
	return strconv.QuoteToGraphic(value)
}

func encodeExplanation(e config.Explanation) map[string]any {
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
