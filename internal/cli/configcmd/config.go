// Package configcmd is dowel config: it checks the configuration and explains where each value of a
// server's entry came from.
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

// NewCommand returns the command dowel config.
func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check and explain your configuration",
		Long: `dowel reads servers from mcpServers in dowel.json (or .jsonc, .yaml, .toml) in your configuration folder and in the folder of
a project, and from the project's .mcp.json. A project's entry takes precedence over your entry of the same name. check shows
the problems of the files and which files were read. explain shows where the values of a server came from.`,
		Example: `  dowel config check
  dowel config check --json --project .`,
	}
	cmd.AddCommand(checkCommand(f), explainCommand(f))
	return cmd
}

// problemsError is the error of a configuration with errors. It holds their number; the problems
// were shown before.
type problemsError int

func (n problemsError) Error() string {
	if n == 1 {
		return "the configuration has one error"
	}
	return fmt.Sprintf("the configuration has %d errors", int(n))
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

// checkConfig shows all problems of the configuration and fails if one of them is an error.
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

// writeSummary shows which files were read, or where dowel looked for files.
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
		fmt.Fprintln(f.Stdout, "Found no configuration file. Looked for:")
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
		Use: "explain NAME", Short: "Show each value of a server, its origin, and the values of its variables",
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

// valueLine is the JSON output for a value.
type valueLine struct {
	Field   string   `json:"field"`
	Value   string   `json:"value"`
	Written string   `json:"written,omitzero"`
	At      string   `json:"at"`
	From    []string `json:"from,omitempty"`
}

// explainServer shows the values of a server with their origins.
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
		return exit.Usagef("the configuration has no server named %s%s", name, suggest.Hint(name, names))
	}
	if f.JSON {
		return f.WriteValue(encodeExplanation(e))
	}
	fmt.Fprintf(f.Stdout, "%s, from %s\n", f.Stdout.Bold(term.Line(name)), e.Server.At)
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
		fmt.Fprintln(f.Stdout, "  replaces the entry at "+s.At.String())
	}
	for _, p := range e.Problems {
		display.WriteProblem(f, p)
	}
	return nil
}

// quoteValue quotes a value that is empty or has spaces, quotes or unprintable characters.
func quoteValue(value string) string {
	plain := value != "" && !strings.ContainsFunc(value, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune("\"'`", r)
	})
	if plain {
		return term.Line(value)
	}
	return strconv.QuoteToGraphic(value)
}

// encodeExplanation returns the JSON output for an explanation.
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
