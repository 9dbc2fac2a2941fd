// Package exportcmd is dowel export: it makes dowel the MCP server of another tool.
package exportcmd

import (
	"cmp"
	"context"
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
	"github.com/dowel-mcp/dowel/internal/wirename"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel export.
func NewCommand(f *factory.Factory) *cobra.Command {
	opts := &options{}
	cmd := &cobra.Command{
		Use:   "export --to TOOL",
		Short: "Make dowel the MCP server of another tool: one entry for all your servers",
		Long: `Add one entry to another tool's configuration, which starts dowel up --stdio and so offers all your servers as one. The rest
of the file stays unchanged, and dowel keeps a copy of the old file. Entries that reach the gateway by its URL need its token;
with --replace they start dowel instead, which needs no token. With --remove, the entry is
removed again; entries of your own and entries that were changed since stay. The tools are:

  ` + strings.Join(term.Wrap(editing.ToolNames(), 100), "\n  "),
		Example: `  dowel export --to cursor --dry-run
  dowel export --to claude-code
  dowel export --to claude-code --remove`,
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
			return runExport(cmd.Context(), f, opts)
		},
	}
	opts.where.AddFlags(cmd)
	cmd.Flags().StringVar(&opts.tool, "to", "", "the `tool`")
	cmd.Flags().StringVar(&opts.name, "name", "dowel", "the `name` of the entry")
	cmd.Flags().BoolVar(&opts.replace, "replace", false, "replace entries that reach dowel's gateway by its URL")
	cmd.Flags().BoolVar(&opts.remove, "remove", false, "remove the entry that dowel export wrote")
	cmd.MarkFlagsMutuallyExclusive("replace", "remove")
	cmd.Flags().BoolVar(&opts.dry, "dry-run", false, "show the change, and write nothing")
	return cmd
}

// options are the flags of dowel export.
type options struct {
	where      factory.Places
	tool, name string

	replace, remove, dry bool
}

func runExport(ctx context.Context, f *factory.Factory, opts *options) error {
	if opts.tool == "" || !slices.Contains(editing.ToolNames(), opts.tool) {
		return exit.Usagef("--to: which tool?%s", suggest.Hint(opts.tool, editing.ToolNames()))
	}
	o, err := opts.where.ConfigOptions()
	if err != nil {
		return err
	}
	d, err := config.LookupDialect(opts.tool)
	if err != nil {
		return err
	}
	file := userFile(d, o)
	if opts.remove {
		return removeExport(f, d, file, opts)
	}
	self, err := editing.InstalledPath(f, opts.dry)
	if err != nil {
		return err
	}
	entries := findURLEntries(opts.tool, o, gatewayAddresses(ctx, o))
	if opts.replace {
		if n, err := replaceURLEntries(f, d, self, file, entries, opts.dry); err != nil || n > 0 {
			return err // the file has an entry for dowel now
		}
	}
	err = editing.EditFile(f, file, opts.dry, true, func(text []byte, format edit.Format) ([]byte, error) {
		return edit.Set(text, format, transfer.Path(d, opts.name), transfer.Command(d, opts.name, self, "up", "--stdio"))
	})
	if err != nil || opts.dry || f.JSON {
		return err
	}
	f.WriteMessage("%s now starts dowel as its server %q: %s up --stdio. Start %[1]s again, or let it reload its servers.", d.Title, opts.name, self)
	if notice := duplicateNotice(file, opts.tool, opts.name, o); notice != "" {
		f.WriteMessage("%s", notice)
	}
	if notice := urlNotice(opts.tool, entries); notice != "" && !opts.replace {
		f.WriteMessage("%s", notice)
	}
	return nil
}

// userFile returns the path of the tool's file for the user: an existing file, or else the usual
// path.
func userFile(d config.Dialect, o config.Options) string {
	all := d.Places(o)
	for _, p := range all {
		if _, err := os.Stat(p.Path); err == nil && p.Scope == config.User && !p.Nested {
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
			mine := cmp.Or(own.Server(s.Name), own.Server(wirename.Fit(s.Name)))
			if f.Path == path && s.Name != name && mine != nil && !mine.Disabled && !s.Disabled {
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
