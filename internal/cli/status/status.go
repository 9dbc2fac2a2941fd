// Package status is dowel status: the state of the running daemon and of its servers.
package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/spf13/cobra"
)

// NewCommand returns the command dowel status.
func NewCommand(f *factory.Factory) *cobra.Command {
	var token, renew bool
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show the state of the running dowel and its servers, or all about one server",
		Long: `Show the servers of the dowel that you started with dowel up, and the address of its gateway. With a name, show everything
about that server, including the last lines of its stderr. The exit code is 3 if dowel is not running.

Servers are in one of these states:
  starting             dowel starts it or connects to it
  installing, 41 s     npx or another package runner installs it, which may take minutes
  ready                it accepts calls
  failed               the problem and the time of the next attempt are shown below it
  stopped              it is idle; the next call starts it
  disabled             you switched it off: dowel servers enable NAME
  needs configuration  its entry is wrong, or a variable has no value
  needs trust          it belongs to a project: dowel trust NAME
  needs authorization  it got no credentials, or refuses them
  needs login          you must log in: dowel login NAME, or at the address below it for which its process waits`,
		Example: `  dowel status
  dowel status everything
  dowel status --json
  curl -H "$(dowel status --token)" http://127.0.0.1:7800/status.json`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: connect.CompleteNames,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			switch {
			case token && len(names) > 0:
				return exit.Usagef("--token takes no server name, since all servers share the gateway's token: dowel status --token")
			case renew && !token:
				return exit.Usagef("--renew needs --token: dowel status --token --renew replaces the gateway's token")
			case token:
				return showToken(cmd.Context(), f, renew)
			case len(names) > 0:
				return showServer(cmd.Context(), f, names[0])
			}
			return runStatus(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&token, "token", false, "print the HTTP header with the token that clients of the gateway's address send")
	cmd.Flags().BoolVar(&renew, "renew", false, "with --token, replace the token first; the old one is invalid at once")
	return cmd
}

// fetchStatus asks the running daemon for its status.
func fetchStatus(ctx context.Context) (control.Status, error) {
	s, err := factory.RunningDaemon().Status(ctx)
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		err = exit.ConnectError{Server: "the running dowel", Err: err}
	}
	return s, err
}

func runStatus(ctx context.Context, f *factory.Factory) error {
	s, err := fetchStatus(ctx)
	if err != nil {
		return err
	}
	if f.JSON {
		return f.WriteValue(s)
	}
	fmt.Fprintf(f.Stdout, "%s, process %d, has been running for %s\n", term.Line(version.Title(s.Version)), s.PID, display.Age(time.Since(s.Started)))
	if s.Gateway != "" {
		f.WriteMessage("The gateway is at %s; dowel console shows it", s.Gateway)
	}
	if s.Open {
		f.WriteMessage("It is open: every program and user of this machine may use it without a token")
	}
	if s.Cluster != nil && s.Cluster.Connected {
		fmt.Fprintln(f.Stdout, term.Line(s.Cluster.Summary()))
	} else if s.Cluster != nil {
		f.Warn("%s", term.Line(s.Cluster.Summary()))
	}
	if s.Tasks != nil {
		f.Warn("%s (%s ago): dowel tries again with the next task", term.Line(s.Tasks.Problem), display.Age(time.Since(s.Tasks.Time)))
	}
	if len(s.Files) > 0 {
		f.WriteMessage("Servers of %s", strings.Join(s.Files, ", "))
	}
	for _, full := range nearLimits(s.Limits) {
		f.Warn("%s: clients above it are refused; see gateway.limits in the guide", full)
	}
	for _, problem := range s.Problems {
		f.Warn("%s; dowel keeps its previous configuration", term.Line(problem))
	}
	for _, text := range display.ServerTable(f, s.Servers, f.Stdout.Width()) {
		fmt.Fprintln(f.Stdout, text)
	}
	return nil
}

// nearLimits describes each limit of the gateway of which at least nine tenths are used.
func nearLimits(l control.Limits) (full []string) {
	for _, of := range []struct {
		name string
		control.Limit
	}{{"bytes", l.Bytes}, {"streams", l.Streams}, {"sessions", l.Sessions}} {
		if of.Limit.Limit > 0 && of.Used >= of.Limit.Limit-of.Limit.Limit/10 {
			full = append(full, fmt.Sprintf("the gateway holds %d of %d %s", of.Used, of.Limit.Limit, of.name))
		}
	}
	return full
}

// maxStderrLines limits the lines of a server's stderr in its status.
const maxStderrLines = 10

// FullStatus is the JSON output for one server.
type FullStatus struct {
	control.Server
	// File is the position of the server's entry. It is empty if the configuration of the current
	// folder does not contain the entry.
	File string `json:"file,omitzero"`
	// Stderr has the last lines that the server wrote to stderr, oldest first.
	Stderr []string `json:"stderr"`
}

// showServer shows everything about one server.
func showServer(ctx context.Context, f *factory.Factory, name string) error {
	status, err := fetchStatus(ctx)
	if err == nil {
		err = connect.CheckServers(status, []string{name})
	}
	if err != nil {
		return err
	}
	i := slices.IndexFunc(status.Servers, func(s control.Server) bool { return s.Name == name })
	full := FullStatus{Server: status.Servers[i], Stderr: []string{}, File: entryPosition(status, name)}
	for e, err := range factory.RunningDaemon().Logs(ctx, name, false) {
		if err != nil {
			return err
		}
		if e.Kind == "stderr" {
			full.Stderr = append(full.Stderr, e.Line)
		}
	}
	full.Stderr = full.Stderr[max(0, len(full.Stderr)-maxStderrLines):]
	if f.JSON {
		return f.WriteValue(full)
	}
	writeServer(f, full)
	return nil
}

// entryPosition returns the position of a server's entry, or "" if the running daemon does not read
// the file that the current folder's configuration takes the server from.
func entryPosition(s control.Status, name string) string {
	o, err := new(factory.Places).ConfigOptions()
	if err != nil {
		return ""
	}
	entry := config.Load(o).Server(name)
	if entry == nil || !slices.Contains(s.Files, entry.Path) {
		return ""
	}
	return entry.At.String()
}

// keyIndent is the number of columns that a row's value cannot use: 12 before it, and one that
// stays free at the end.
const keyIndent = 13

// writeServer writes a server's status for a person, one row for each fact.
func writeServer(f *factory.Factory, s FullStatus) {
	row := func(key, value string) {
		if value != "" {
			fmt.Fprintf(f.Stdout, "  %s %s\n", f.Stdout.Dim(fmt.Sprintf("%-9s", key)), strings.ReplaceAll(f.Stdout.Clean(strings.TrimSpace(value)), "\n", "\n            "))
		}
	}
	wrapped := func(key, value string) {
		if f.Stdout.IsTerminal() {
			value = strings.Join(term.Wrap(strings.Fields(value), f.Stdout.Width()-keyIndent), "\n")
		}
		row(key, value)
	}
	fmt.Fprintln(f.Stdout, f.Stdout.Bold(term.Line(s.Name)))
	row("state", describeAge(s.Server))
	wrapped("cause", s.Cause)
	if s.Status != hub.Ready {
		wrapped("problem", s.Problem)
		wrapped("advice", s.Advice)
	}
	if !s.Next.IsZero() {
		row("attempts", fmt.Sprintf("%d failed; the next one is at %s", s.Attempt, s.Next.Local().Format(time.TimeOnly)))
	}
	row("note", s.Note)
	row("runs at", term.Line(s.RunsAt))
	row("server", term.Line(s.Title))
	row("revision", term.Line(strings.TrimSpace(s.Revision+" "+s.Era)))
	row("offers", fmt.Sprintf("%d tools, %d prompts, %d resources", s.Tools, s.Prompts, s.Resources))
	for _, q := range s.Quarantined {
		row("left out", term.Line(fmt.Sprintf("the %s %s: %s", q.Kind, q.Name, q.Reason)))
	}
	for _, c := range s.Changed {
		row("changed", fmt.Sprintf("the %s, seen %s", c.Words(), c.Time.Local().Format("2006-01-02 15:04")))
		for _, line := range c.Lines {
			row("", "  "+term.RevealLine(line))
		}
	}
	if s.Changed != nil {
		row("", "accept it with dowel trust --definitions "+term.Line(s.Name))
	}
	row("starts", term.Line(s.Origin))
	row("from", term.Line(s.Source))
	row("file", s.File)
	row("stderr", strings.Join(s.Stderr, "\n"))
}

// describeAge returns the state of a server and the time since it began.
func describeAge(s control.Server) string {
	if !s.Installing.IsZero() {
		return display.DescribeStatus(s)
	}
	return fmt.Sprintf("%s for %s", s.Status, display.Age(time.Since(s.Since)))
}

// showToken prints the gateway's token as a header. It asks the running dowel, or else reads the
// configuration and the state. renew replaces the token first.
func showToken(ctx context.Context, f *factory.Factory, renew bool) error {
	token, err := currentToken(ctx, f, renew)
	if err != nil {
		return err
	}
	header := "Authorization: Bearer " + token
	if f.JSON {
		return f.WriteValue(map[string]string{"token": token, "header": header})
	}
	fmt.Fprintln(f.Stdout, header)
	return nil
}

// currentToken returns the gateway's token. If the running dowel cannot store its token, it warns
// that the token is temporary. If no dowel runs, it returns the stored token, or an error if there
// is none.
func currentToken(ctx context.Context, f *factory.Factory, renew bool) (string, error) {
	if s, err := fetchStatus(ctx); err == nil && s.Gateway != "" {
		if s.TemporaryToken {
			f.Warn("this token ends with the running dowel, which cannot write to its folder: set XDG_STATE_HOME to a folder that dowel can write to")
		}
		return factory.RunningDaemon().Token(ctx, renew)
	}
	access, err := f.GatewayAccess(nil)
	switch {
	case err != nil:
		return "", err
	case access.Open():
		return "", daemon.ErrOpen
	case access.UsesAuth():
		return "", daemon.ErrAuth
	case access.HasTemporaryToken():
		return "", errors.New("no dowel is running, and dowel cannot store a token for the next one: set XDG_STATE_HOME to a folder that dowel can write to")
	case renew:
		return access.RenewToken()
	}
	return access.Token(), nil
}
