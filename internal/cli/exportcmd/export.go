// Package exportcmd is dowel export: it makes dowel the MCP server of another tool.
package exportcmd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func NewCommand(f *factory.Factory) *cobra.Command {
	var to, name string
	var where factory.Places
	var dry bool
	cmd := &cobra.Command{
		Use:   "export --to TOOL",
		Short: "Make dowel the MCP server of another tool: one entry for all your servers",
		Long: `Write one entry into another tool's configuration, which starts dowel up --stdio: all your servers, as one. Everything else
in the file stays as it is, and a copy of it is kept. The tools are:

  ` + strings.Join(term.Wrap(editing.ToolNames(), 100), "\n  "),
		Example: `  dowel export --to cursor --dry-run
  dowel export --to claude-code`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return nil
			}
			if tool := suggest.Nearest(words[0], editing.ToolNames()); tool != "" {
				return exit.Usagef("the tool stands behind --to; did you mean dowel export --to %s?", tool)
			}
			return exit.Usagef("%q is too much: write dowel export --to TOOL%s", words[0], suggest.Hint(words[0], editing.ToolNames()))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runExport(f, where, to, name, dry)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the `tool`")
	cmd.Flags().StringVar(&name, "name", "dowel", "the `name` of the entry")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be written, and write nothing")
	return cmd
}

func runExport(f *factory.Factory, where factory.Places, to, name string, dry bool) error {
	if to == "" || !slices.Contains(editing.ToolNames(), to) {
		return exit.Usagef("--to: which tool?%s", suggest.Hint(to, editing.ToolNames()))
	}
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	d, err := config.LookupDialect(to)
	if err != nil {
		return err
	}
	self, err := editing.InstalledPath()
	if err != nil {
		return err
	}
	err = editing.EditFile(f, userFile(d, o), dry, true, func(text []byte, format edit.Format) ([]byte, error) {
		return edit.Set(text, format, transfer.Path(d, name), transfer.Command(d, name, self, "up", "--stdio"))
	})
	if err != nil || dry || f.JSON {
		return err
	}
	if twice := duplicateNotice(userFile(d, o), to, name, o); twice != "" {
		fmt.Fprintln(f.Stdout, twice)
	}
	return nil
}

// userFile returns the tool's own file of the user: one that is there, else the usual one.
func userFile(d config.Dialect, o config.Options) string {
	all := d.Places(o)
	for _, p := range all {
		if _, err := os.Stat(p.Path); err == nil && p.Scope == config.User {
			return p.Path
		}
	}
	return all[0].Path
}

// duplicateNotice says which servers of a tool's file stay there beside dowel's entry, through which they are offered as well; empty
// where there are none.
func duplicateNotice(path, tool, name string, o config.Options) string {
	own := config.Load(o)
	var twice []string
	for _, f := range config.Discover(o, tool) {
		for _, s := range f.Servers {
			if f.Path == path && s.Name != name && own.Server(s.Name) != nil {
				twice = append(twice, s.Name)
			}
		}
	}
	if twice == nil {
		return ""
	}
	what := "it is"
	if len(twice) > 1 {
		what = "they are"
	}
	return fmt.Sprintf("The other entries of %s stay: %s would be there twice, since %s among what dowel offers. Remove what you do not want twice there.",
		path, strings.Join(twice, ", "), what)
}
