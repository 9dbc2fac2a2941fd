package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

func (a *app) statusCommand() *cobra.Command {
	var token bool
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Tell how the servers of the running dowel are, or one of them in full",
		Long: `Tell how the servers of the dowel are that you have started with dowel up, and where its gateway is; with a name, all that
is known of that server, the last lines of its stderr among it. Where no dowel is running the exit code is 3.

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
  dowel status everything
  dowel status --json`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			a.began = true
			switch {
			case token && len(names) > 0:
				return usagef("--token is that of the gateway, for all servers: write dowel status --token")
			case token:
				return a.showToken()
			case len(names) > 0:
				return a.statusOf(cmd.Context(), names[0])
			}
			return a.status(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&token, "token", false, "show the token that other machines need to use the gateway")
	return cmd
}

// askStatus asks the running dowel how it is.
func askStatus(ctx context.Context) (control.Status, error) {
	s, err := running().Status(ctx)
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		err = connectError{"the running dowel", err}
	}
	return s, err
}

func (a *app) status(ctx context.Context) error {
	s, err := askStatus(ctx)
	if err != nil {
		return err
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
	for _, problem := range s.Problems {
		a.warn("%s; what ran before goes on", line(problem))
	}
	for _, text := range a.table(s.Servers, a.stdout.width()) {
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

// lastLines is how many lines of a server's stderr are shown with its status.
const lastLines = 10

// fullStatus is one server, as a program reads it.
type fullStatus struct {
	control.Server
	// File is where its entry stands, as far as the configuration of this folder has it.
	File   string   `json:"file,omitzero"`
	Stderr []string `json:"stderr"`
}

// statusOf tells all that is known of one server.
func (a *app) statusOf(ctx context.Context, name string) error {
	status, err := askStatus(ctx)
	if err == nil {
		err = haveServers(status, []string{name})
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(status.Servers, func(s control.Server) bool { return s.Name == name })
	full := fullStatus{Server: status.Servers[i], Stderr: []string{}, File: entryPlace(status, name)}
	for e, err := range running().Logs(ctx, name, false) {
		if err != nil {
			return err
		}
		if e.Kind == "stderr" {
			full.Stderr = append(full.Stderr, e.Line)
		}
	}
	full.Stderr = full.Stderr[max(0, len(full.Stderr)-lastLines):]
	if a.json {
		return a.value(full)
	}
	a.showFull(full)
	return nil
}

// entryPlace returns where the entry of a server stands that the running dowel has; empty where that is not known.
func entryPlace(s control.Status, name string) string {
	o, err := new(places).config()
	if err != nil {
		return ""
	}
	entry := config.Load(o).Server(name)
	if entry == nil || !slices.Contains(s.Files, entry.Path) {
		return ""
	}
	return entry.At.String()
}

func (a *app) showFull(s fullStatus) {
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(a.stdout, "  %s %s\n", a.stdout.dim(fmt.Sprintf("%-9s", key)), strings.ReplaceAll(a.stdout.clean(strings.TrimSpace(value)), "\n", "\n            "))
		}
	}
	fmt.Fprintln(a.stdout, a.stdout.bold(line(s.Name)))
	row("state", fmt.Sprintf("%s for %s", s.Status, ago(time.Since(s.Since))))
	row("cause", s.Cause)
	if s.Status != hub.Ready {
		row("problem", s.Problem)
		row("advice", s.Advice)
	}
	if !s.Next.IsZero() {
		row("attempts", fmt.Sprintf("%d failed; the next one is at %s", s.Attempt, s.Next.Local().Format(time.TimeOnly)))
	}
	row("note", s.Note)
	row("server", line(s.Title))
	row("revision", line(strings.TrimSpace(s.Revision+" "+s.Era)))
	row("offers", fmt.Sprintf("%d tools, %d prompts, %d resources", s.Tools, s.Prompts, s.Resources))
	for _, q := range s.Quarantined {
		row("left out", line(fmt.Sprintf("the %s %s: %s", q.Kind, q.Name, q.Reason)))
	}
	row("starts", line(s.Origin))
	row("from", line(s.Source))
	row("file", s.File)
	row("stderr", strings.Join(s.Stderr, "\n"))
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
