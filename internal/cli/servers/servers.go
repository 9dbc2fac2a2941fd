// Package servers is dowel servers: the commands that list, add, remove, switch and restart the
// servers of the user, and show their logs.
package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List servers, switch them on and off, restart, add and remove them, read their logs",
		Long: `Change the servers of your configuration. What you switch on and off is kept in dowel's own state and not in a file that a
project shares; what you add or remove is written into your dowel.json, in which everything else stays as it is. A dowel
that is running takes all of it up at once.`,
		Example: `  dowel servers list
  dowel servers disable github
  dowel servers logs github --follow
  dowel servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel servers add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'`,
	}
	cmd.AddCommand(listCommand(f), logsCommand(f), reloadCommand(f), addCommand(f), removeCommand(f),
		verbCommand(f, "enable", "Switch servers on", `Switch servers on, whatever their entries say. That is kept in dowel's own state, also where no dowel is running; one that is
running starts them, and what has come of that is told.`),
		verbCommand(f, "disable", "Switch servers off; they are ended", `Switch servers off. That is kept in dowel's own state, also where no dowel is running; one that is running ends them.`),
		verbCommand(f, "restart", "End servers and start them again", `End servers of the running dowel and start them again, from what the files say now. What has come of it is told; a server
that fails is no connection, exit code 3.`))
	return cmd
}

// verbCommand does one thing with servers.
func verbCommand(f *factory.Factory, verb, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME…", Short: short, Long: long, Args: cobra.MinimumNArgs(1), ValidArgsFunction: connect.CompleteNames,
		Example: fmt.Sprintf("  dowel servers %[1]s github\n  dowel servers %[1]s github files --json", verb),
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return switchServers(cmd.Context(), f, verb, names)
		},
	}
}

// switchServers does one thing with servers, and tells what has come of it: by the running dowel, or, for switches, without.
func switchServers(ctx context.Context, f *factory.Factory, verb string, names []string) error {
	before, err := factory.RunningDaemon().Status(ctx)
	if errors.Is(err, control.ErrNotRunning) && verb != "restart" {
		return saveSwitch(f, verb, names)
	}
	if err == nil {
		err = connect.CheckServers(before, names)
	}
	if err != nil {
		return err
	}
	for _, s := range before.Servers {
		if verb == "restart" && slices.Contains(names, s.Name) && s.Status.Held() {
			return exit.ConnectError{Server: s.Name, Err: fmt.Errorf("it %s: %s", connect.StatusWords(s.Status), s.Cause)}
		}
	}
	for _, name := range names {
		if err := factory.RunningDaemon().Do(ctx, name, verb); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range names {
		s, err := awaitSettled(ctx, name)
		switch {
		case err != nil:
			return err
		case verb == "restart" && isFailing(s):
			errs = append(errs, exit.ConnectError{Server: name, Err: errors.New("it was started again: " + describeState(s))})
		}
		writeOutcome(f, Outcome{Did: verb, Running: true, Server: s.Name, Status: s.Status, Cause: s.Cause, Problem: s.Problem, Advice: s.Advice}, describeState(s))
	}
	return errors.Join(errs...)
}

// Outcome is what has come of something that was done with a server, as a program reads it.
type Outcome struct {
	Server string `json:"server"`
	Did    string `json:"did"`
	// Running: there is a dowel that runs the server.
	Running bool       `json:"running"`
	Status  hub.Status `json:"status,omitzero"`
	Cause   string     `json:"cause,omitzero"`
	Problem string     `json:"problem,omitzero"`
	Advice  string     `json:"advice,omitzero"`
}

// writeOutcome tells of one, with how the server is now.
func writeOutcome(f *factory.Factory, o Outcome, now string) {
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, o)
		return
	}
	text := map[string]string{"enable": "switched on", "disable": "switched off", "restart": "ended and started again"}[o.Did]
	text = term.Line(o.Server) + " was " + text
	switch {
	case !o.Running:
		text += "; " + now
	case o.Did != "disable":
		text += ": " + now
	}
	fmt.Fprintln(f.Stdout, text)
}

// settleTimeout bounds waiting for what comes of a start.
const settleTimeout = 3 * time.Second

// awaitSettled returns how a server of the running dowel is, when that is known or settling has passed.
func awaitSettled(ctx context.Context, name string) (control.Server, error) {
	for end := time.Now().Add(settleTimeout); ; {
		status, err := factory.RunningDaemon().Status(ctx)
		if err == nil {
			err = connect.CheckServers(status, []string{name})
		}
		if err != nil {
			return control.Server{}, err
		}
		s := status.Servers[slices.IndexFunc(status.Servers, func(s control.Server) bool { return s.Name == name })]
		if s.Status != hub.Starting || isFailing(s) || time.Now().After(end) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isFailing reports whether the server's last start has failed, even if it is tried again.
func isFailing(s control.Server) bool {
	return s.Status == hub.Failed || s.Status == hub.NeedsAuthorization || s.Status == hub.Starting && s.Attempt > 0
}

// describeState is how a server is, behind a colon.
func describeState(s control.Server) string {
	switch {
	case isFailing(s):
		text := s.Status.String()
		if s.Status == hub.Starting {
			text = hub.Failed.String()
		}
		if s.Problem != "" {
			text += ": " + term.FirstLine(s.Problem)
		}
		if s.Advice != "" {
			text += " → " + term.Line(s.Advice)
		}
		return text
	case s.Status == hub.Ready:
		return fmt.Sprintf("ready, %d tools", s.Tools)
	case s.Status == hub.Starting:
		return "it is still starting, see dowel status " + term.Line(s.Name)
	}
	return s.Status.String() + ": " + term.Line(s.Cause)
}

func reloadCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Let the running dowel read the configuration again", Args: cobra.NoArgs,
		Long:    "Let the running dowel read the configuration again. It watches its files, so that is needed only where it cannot.",
		Example: "  dowel servers reload",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return reloadConfig(cmd.Context(), f)
		},
	}
}

func reloadConfig(ctx context.Context, f *factory.Factory) error {
	if err := factory.RunningDaemon().Reload(ctx); err != nil {
		return err
	}
	s, err := factory.RunningDaemon().Status(ctx)
	switch {
	case err != nil:
		return err
	case f.JSON:
		return f.WriteValue(map[string]any{"files": s.Files, "servers": len(s.Servers)})
	}
	files := strings.Join(s.Files, ", ")
	if files == "" {
		files = "The configuration, of which there is no file,"
	}
	fmt.Fprintf(f.Stdout, "%s was read again: %d servers.\n", files, len(s.Servers))
	return nil
}

func logsCommand(f *factory.Factory) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server wrote to stderr, and what happened to it", Args: cobra.ExactArgs(1), ValidArgsFunction: connect.CompleteNames,
		Example: "  dowel servers logs github\n  dowel servers logs github --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return showLogs(cmd.Context(), f, args[0], follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return cmd
}

func showLogs(ctx context.Context, f *factory.Factory, name string, follow bool) error {
	s, err := factory.RunningDaemon().Status(ctx)
	if err == nil {
		err = connect.CheckServers(s, []string{name})
	}
	if err != nil {
		return err
	}
	for e, err := range factory.RunningDaemon().Logs(ctx, name, follow) {
		switch {
		case err != nil:
			return err
		case f.JSON:
			factory.WriteJSONLine(f.Stdout, e)
		case e.Kind == "state":
			f.WriteNote("%s %s: %s", e.Time.Local().Format(time.TimeOnly), e.Status, e.Cause)
		default:
			fmt.Fprintln(f.Stdout, f.Stdout.Dim(e.Time.Local().Format(time.TimeOnly))+" "+f.Stdout.Clean(e.Line))
		}
	}
	return nil
}
