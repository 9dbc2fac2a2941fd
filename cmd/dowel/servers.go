package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) serversCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "Switch servers on and off, restart, add and remove them, read their logs",
		Long: `Change the servers of your configuration. What you switch on and off is kept in dowel's own state and not in a file that a
project shares; what you add or remove is written into your dowel.json, in which everything else stays as it is. A dowel
that is running takes all of it up at once.`,
		Example: `  dowel servers disable github
  dowel servers logs github --follow
  dowel servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel servers add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'`,
	}
	for verb, short := range map[string]string{
		"enable": "Switch a server on", "disable": "Switch a server off; it is ended", "restart": "End a server and start it again",
	} {
		cmd.AddCommand(a.verbCommand(verb, short))
	}
	cmd.AddCommand(a.logsCommand(), a.reloadCommand(), a.addCommand(), a.removeCommand())
	return cmd
}

// verbCommand does one thing with servers of the running dowel.
func (a *app) verbCommand(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME…", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: a.completeRunning,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			for _, name := range names {
				if err := running().Do(cmd.Context(), name, verb); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// completeRunning completes the names of the running dowel's servers.
func (a *app) completeRunning(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
	defer cancel()
	s, err := running().Status(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, server := range s.Servers {
		names = append(names, server.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Read the configuration again", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return running().Reload(cmd.Context())
		},
	}
}

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server wrote to stderr, and what happened to it", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.began = true
			for e, err := range running().Logs(cmd.Context(), args[0], follow) {
				switch {
				case err != nil:
					return err
				case a.json:
					encodeLine(a.stdout, e)
				case e.Kind == "state":
					a.note("%s %s: %s", e.Time.Local().Format(time.TimeOnly), e.Status, e.Cause)
				default:
					fmt.Fprintln(a.stdout, a.stdout.dim(e.Time.Local().Format(time.TimeOnly))+" "+a.stdout.clean(e.Line))
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return cmd
}
