package cli

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/spf13/cobra"
)

func newVersionCommand(a *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which dowel this is, and how it was built",
		Long:    "Show the version of dowel, the commit that it was built from and when that was made, as far as known, and Go's version.",
		Example: "  dowel version\n  dowel version --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			a.Parsed = true
			b := version.Built()
			if a.Json {
				return a.WriteValue(b)
			}
			fmt.Fprintf(a.Stdout, "dowel     %s\n", b.Version)
			if b.Commit != "" {
				changed := map[bool]string{true: ", with changes"}[b.Modified]
				fmt.Fprintf(a.Stdout, "commit    %s%s\ntime      %s\n", b.Commit, changed, b.Time)
			}
			fmt.Fprintf(a.Stdout, "go        %s\nplatform  %s\n", b.Go, b.Platform)
			return nil
		},
	}
}
