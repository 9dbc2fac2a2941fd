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

// NewCommand returns the command dowel export.
func NewCommand(f *factory.Factory) *cobra.Command {
	var to, name string
	var where factory.Places
	var dry bool
	cmd := &cobra.Command{
		Use:   "export --to TOOL",
		Short: "Make dowel the MCP server of another tool: one entry for all your servers",
		Long: `Add one entry to another tool's configuration, which starts dowel up --stdio and so offers all your servers as one. The rest
of the file stays unchanged, and dowel keeps a copy of the old file. The tools are:

  ` + strings.Join(term.Wrap(editing.ToolNames(), 100), "\n  "),
		Example: `  dowel export --to cursor --dry-run
  dowel export --to claude-code`,
		Args: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 {
				return nil
			}
			if tool := suggest.Nearest(words[0], editing.ToolNames()); tool != "" {
				return exit.Usagef("name the tool with --to; did you mean dowel export --to %s?", tool)
			}
			return exit.Usagef("unexpected argument %q: want dowel export --to TOOL%s", words[0], suggest.Hint(words[0], editing.ToolNames()))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runExport(f, where, to, name, dry)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the `tool`")
	cmd.Flags().StringVar(&name, "name", "dowel", "the `name` of the entry")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show the change, and write nothing")
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
	if notice := duplicateNotice(userFile(d, o), to, name, o); notice != "" {
		fmt.Fprintln(f.Stdout, notice)
	}
	return nil
}

// userFile returns the path of the tool's file for the user: an existing file, or else the usual
// path.
func userFile(d config.Dialect, o config.Options) string {
	all := d.Places(o)
	for _, p := range all {
		if _, err := os.Stat(p.Path); err == nil && p.Scope == config.User {
			return p.Path
		}
	}
	return all[0].Path
}

// duplicateNotice returns a message about servers of a tool's file that dowel offers too, or "".
func duplicateNotice(path, tool, name string, o config.Options) string {
	own := config.Load(o)
	var duplicates []string
	for _, f := range config.Discover(o, tool) {
		for _, s := range f.Servers {
			if f.Path == path && s.Name != name && own.Server(s.Name) != nil {
				duplicates = append(duplicates, s.Name)
			}
		}
	}
	if duplicates == nil {
		return ""
	}
	return fmt.Sprintf("dowel also offers these servers, which %s keeps: %s. Remove them there to avoid duplicates.",
		path, strings.Join(duplicates, ", "))
}
