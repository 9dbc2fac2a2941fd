package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/config"
	"github.com/dowel-mcp/dowel/hub/control"
	"github.com/spf13/cobra"
)

func (a *app) statusCommand() *cobra.Command {
	var token bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell how the servers of the running dowel are",
		Long: `Tell how the servers of the dowel are that you have started with dowel up, and where its gateway is.

Servers are in one of these states:
  starting             it is being started or connected to
  ready                calls reach it
  failed               what went wrong stands below it, and when it is tried again
  stopped              nobody needs it; the next call starts it
  disabled             you have switched it off: dowel servers enable NAME
  needs configuration  its entry is wrong, or a variable has no value
  needs trust          it came with a project: dowel trust NAME
  needs authorization  the server wants to know who asks`,
		Example: `  dowel status
  dowel status --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			if token {
				return a.showToken()
			}
			return a.status(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&token, "token", false, "show the token that other machines need to use the gateway")
	return cmd
}

// running is the dowel that the user has started.
func running() *control.Client { return control.NewClient(new(places).socket()) }

func (a *app) status(ctx context.Context) error {
	s, err := running().Status(ctx)
	if err != nil {
		return connectError{"the running dowel", err}
	}
	if a.json {
		return a.value(s)
	}
	fmt.Fprintf(a.stdout, "dowel %s, process %d, has been running for %s\n", line(s.Version), s.PID, ago(time.Since(s.Started)))
	if s.Gateway != "" {
		fmt.Fprintf(a.stdout, "The gateway is at %s, its page at %s\n", s.Gateway, s.Page)
	}
	if len(s.Files) > 0 {
		fmt.Fprintln(a.stdout, "Servers of "+strings.Join(s.Files, ", "))
	}
	for _, text := range a.table(s.Servers, a.stdout.columns()-1) {
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

func (a *app) showToken() error {
	store, err := a.choices()
	if err != nil {
		return err
	}
	o, err := new(places).config()
	if err != nil {
		return err
	}
	settings, err := gatewayOf(config.Load(o))
	if err != nil {
		return err
	}
	token := settings.Token
	if token == "" {
		if token, err = store.Token(); err != nil {
			return err
		}
	}
	if a.json {
		return a.value(map[string]string{"token": token})
	}
	fmt.Fprintln(a.stdout, token)
	return nil
}
