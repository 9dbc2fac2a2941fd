package servers

import (
	"context"
	"slices"

	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/edit"
	"github.com/dowel-mcp/dowel/internal/config/leftovers"
	"github.com/dowel-mcp/dowel/internal/config/transfer"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/spf13/cobra"
)

func removeCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var dry bool
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from its configuration file", Args: cobra.ExactArgs(1), ValidArgsFunction: connect.CompleteNames,
		Long: `Remove a server from the file that defines it. If both a project's file and yours define it, the project's entry is removed,
and yours takes effect. The rest of the file stays unchanged, and dowel keeps a copy of the old file.`,
		Example: "  dowel servers remove github --dry-run\n  dowel servers remove github",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return removeServer(cmd.Context(), f, args[0], where, dry)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().Lookup("config").Usage = "remove it from this `file` and read no others (repeatable: the first one that defines it)"
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed, and write nothing")
	return cmd
}

func removeServer(ctx context.Context, f *factory.Factory, name string, where factory.Places, dry bool) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	s, err := findEntry(config.Load(o), name)
	if err != nil {
		return err
	}
	d, err := config.LookupDialect(s.Dialect)
	if err != nil {
		return err
	}
	err = editing.EditFile(f, s.Path, dry, true, func(text []byte, format edit.Format) ([]byte, error) {
		return edit.Remove(text, format, transfer.Path(d, name))
	})
	if err != nil {
		return err
	}
	if !dry {
		editing.ReloadDaemon(ctx, f)
		reportRemovals(f, leftovers.Remove(s, o))
		return nil
	}
	for _, folder := range leftovers.Of(s) {
		if !f.JSON {
			f.WriteNote("%s", folder.Announce())
		}
	}
	return nil
}

// reportRemovals tells the user which folders of a removed server are removed.
func reportRemovals(f *factory.Factory, done []leftovers.Removal) {
	for _, r := range done {
		switch {
		case r.Err != nil:
			f.Warn("%s", r)
		case !f.JSON:
			f.WriteNote("%s", r)
		}
	}
}

// findEntry returns the effective entry of a server.
func findEntry(set *config.Set, name string) (*config.Server, error) {
	if s := set.Server(name); s != nil {
		return s, nil
	}
	if daemon.IsLocal(name) {
		return nil, exit.Usagef("%s is built into dowel and not in your configuration; it only runs when a command names it", name)
	}
	if slices.Contains(builtin.Names(), name) {
		return nil, exit.Usagef("%s is built into dowel and not in your configuration; switch it off with dowel servers disable %[1]s", name)
	}
	var names []string
	for _, known := range set.Servers {
		names = append(names, known.Name)
	}
	return nil, exit.Usagef("the configuration has no server named %s%s", name, suggest.Hint(name, names))
}
