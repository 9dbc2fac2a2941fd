package cli

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/spf13/cobra"
)

// newVersionCommand returns the command version.
func newVersionCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of dowel and how it was built",
		Long:    "Show the version of dowel, the commit that it was built from with its time (if known), and the version of Go.",
		Example: "  dowel version\n  dowel version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f.Parsed = true
			b := version.Current()
			if f.JSON {
				return f.WriteValue(b)
			}
			fmt.Fprintf(f.Stdout, "dowel     %s\n", b.Words())
			if b.Commit != "" {
				changed := map[bool]string{true: ", with changes"}[b.Modified]
				fmt.Fprintf(f.Stdout, "commit    %s%s\ntime      %s\n", b.Commit, changed, b.Time)
			}
			fmt.Fprintf(f.Stdout, "go        %s\nplatform  %s\n", b.Go, b.Platform)
			return nil
		},
	}
}

// addVersionFlag gives root the flag --version. Root must have its RunE.
func addVersionFlag(root *cobra.Command) {
	asked := root.Flags().Bool("version", false, "version for dowel")
	showHelp := root.RunE
	root.RunE = func(cmd *cobra.Command, words []string) error {
		if !*asked {
			return showHelp(cmd, words)
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "dowel %s\n", version.Current())
		return err
	}
}
