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

// NewCommand returns the command dowel servers.
func NewCommand(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "servers",
		Short: "List servers, switch them on and off, restart, add and remove them, read their logs",
		Long: `List and change the servers of your configuration. dowel stores which servers are switched on or off in its own state, not
in a file that a project shares. It writes added servers to your dowel.json and leaves the rest of that file unchanged. A
running dowel applies every change at once.`,
		Example: `  dowel servers list
  dowel servers disable github
  dowel servers logs github --follow
  dowel servers add files -- npx -y @modelcontextprotocol/server-filesystem .
  dowel servers add docs --url https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'`,
	}
	cmd.AddCommand(listCommand(f), logsCommand(f), reloadCommand(f), NewAddCommand(f), setCommand(f), removeCommand(f),
		verbCommand(f, "enable", "Switch servers on", `Switch servers on, whatever their entries say. dowel stores this in its own state. A running dowel starts the servers and
shows the result.`),
		verbCommand(f, "disable", "Switch servers off and stop them", `Switch servers off. dowel stores this in its own state. A running dowel stops the servers.`),
		verbCommand(f, "restart", "Stop servers and start them again", `Stop servers of the running dowel and start them again with the current configuration files. The exit code is 3 if a server
fails to start.`))
	return cmd
}

// verbCommand returns the subcommand that does verb to servers: enable, disable or restart.
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

// switchServers does verb to servers through the running daemon and shows the result. If no daemon
// runs, enable and disable change the stored state, and restart fails.
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
			errs = append(errs, exit.ConnectError{Server: name, Err: errors.New("restarted: " + describeState(s))})
		}
		writeOutcome(f, Outcome{Did: verb, Running: true, Server: s.Name, Status: s.Status, Cause: s.Cause, Problem: s.Problem, Advice: s.Advice}, describeState(s))
	}
	return errors.Join(errs...)
}

// Outcome is the JSON output for a change to one server.
type Outcome struct {
	Server string `json:"server"`
	Did    string `json:"did"`
	// Running is true if a daemon runs, which then applies the change at once.
	Running bool       `json:"running"`
	Status  hub.Status `json:"status,omitzero"`
	Cause   string     `json:"cause,omitzero"`
	Problem string     `json:"problem,omitzero"`
	Advice  string     `json:"advice,omitzero"`
}

// writeOutcome writes an outcome. state describes the server's state for a person.
func writeOutcome(f *factory.Factory, o Outcome, state string) {
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, o)
		return
	}
	text := map[string]string{"enable": "switched on", "disable": "switched off", "restart": "restarted"}[o.Did]
	text = term.Line(o.Server) + " was " + text
	switch {
	case !o.Running:
		text += "; " + state
	case o.Did != "disable":
		text += ": " + state
	}
	f.WriteMessage("%s", text)
}

// settleTimeout limits how long a command waits for a server to start.
const settleTimeout = 3 * time.Second

// awaitSettled waits until a server of the running daemon is started or has failed, but no longer
// than settleTimeout, and returns its state.
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
		if s.Status != hub.Starting || isFailing(s) || !s.Installing.IsZero() || time.Now().After(end) {
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isFailing reports whether the server's last start failed, even if another attempt follows.
func isFailing(s control.Server) bool {
	return s.Status == hub.Failed || s.Status == hub.NeedsAuthorization || s.Status == hub.NeedsLogin && s.Problem != "" || s.Status == hub.Starting && s.Attempt > 0
}

// describeState returns a server's state as text that follows a colon.
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
	case !s.Installing.IsZero():
		return "being installed, which may take minutes: see dowel status " + term.Line(s.Name)
	case s.Status == hub.Starting:
		return "still starting, see dowel status " + term.Line(s.Name)
	}
	return s.Status.String() + ": " + term.Line(s.Cause)
}

func reloadCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Let the running dowel read the configuration again", Args: cobra.NoArgs,
		Long:    "Let the running dowel read the configuration again. dowel watches its files, so this is only needed if watching fails.",
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
		files = "The configuration, which has no files,"
	}
	f.WriteMessage("%s was read again: %d servers.", files, len(s.Servers))
	return nil
}

func logsCommand(f *factory.Factory) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show a server's stderr and its changes of state", Args: cobra.ExactArgs(1), ValidArgsFunction: connect.CompleteNames,
		Example: "  dowel servers logs github\n  dowel servers logs github --follow",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			return showLogs(cmd.Context(), f, args[0], follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "keep showing new lines until Ctrl-C")
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
