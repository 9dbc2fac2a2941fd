// Package login is dowel login, dowel logout and dowel auth: the logins of the user at servers.
package login

import (
	"context"
	"errors"
	"fmt"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// Target names the server of a command: an entry of the configuration, or a URL.
type Target struct {
	where factory.Places
	url   string
	name  string

	command string // of the command line, or "" in a chat
}

func (t *Target) addFlags(cmd *cobra.Command) {
	t.where.AddFlags(cmd)
	cmd.Flags().StringVar(&t.url, "url", "", "a server at this `URL` that has no entry")
}

// setName takes the name of the server from the arguments.
func (t *Target) setName(cmd *cobra.Command, args []string) error {
	switch {
	case t.url != "" && len(args) > 0:
		return exit.Usagef("give either the name %s or --url, not both", args[0])
	case t.url == "" && len(args) != 1:
		return exit.Usagef("name one server: %s SERVER, or %s --url URL", cmd.CommandPath(), cmd.CommandPath())
	case t.url == "":
		t.name, t.command = args[0], cmd.CommandPath()
	}
	return nil
}

// label names the server for people.
func (t *Target) label() string {
	if t.name != "" {
		return t.name
	}
	return t.url
}

// openAuthorization returns the authorization of the requests to the server. login may be nil.
func (t *Target) openAuthorization(f *factory.Factory, login auth.Login) (*configured.LoginTransport, error) {
	if t.url != "" {
		store, err := f.OpenLoginFiles()
		if err != nil {
			return nil, err
		}
		to, err := configured.NewURLLogin(t.url, store, login)
		if err != nil {
			return nil, exit.Usagef("--url: %w", err)
		}
		return to, nil
	}
	if _, err := f.OpenLoginFiles(); err != nil {
		return nil, err
	}
	source, err := f.ReadConfig(t.where)
	if err != nil {
		return nil, err
	}
	to, err := source.Login(t.name, login)
	switch {
	case errors.Is(err, configured.ErrNoServer) && t.command != "":
		return nil, exit.Usagef("%w\na server that has no entry: %s --url URL", err, t.command)
	case errors.Is(err, configured.ErrNoServer):
		return nil, exit.UsageError{Err: err}
	}
	if err != nil {
		return nil, exit.Usagef("%s: %w", t.name, err)
	}
	return to, nil
}

// restart restarts the server in the running dowel, which then uses the changed login. It reports
// whether a dowel runs that has the server.
func (t *Target) restart(ctx context.Context) bool {
	return t.name != "" && factory.RunningDaemon().Do(ctx, t.name, "restart") == nil
}

const loginHelp = `Log in at a server that asks for it, with your browser. dowel opens the page of the server's authorization server, waits for
its answer on a port of this machine, and keeps the login: encrypted, in the folder auth beside its state file. It renews the
login by itself for as long as the server allows that. A running dowel restarts the server.

Without a browser on this machine, as over SSH, dowel prints a code that you enter in a browser elsewhere, if the server offers that
(--device asks for it). Otherwise open the page that dowel prints on another machine. Its last page cannot be loaded there: copy
the address of that page and paste it here. Or forward the printed port: ssh -L PORT:127.0.0.1:PORT HOST.

Settings for servers that need more, such as a client id of your own, are the key oauth of the server's entry. A server whose
entry has an Authorization header gets no login. The login takes at most 5 minutes; Ctrl-C ends it.`

// NewLoginCommand returns the command dowel login.
func NewLoginCommand(f *factory.Factory) *cobra.Command {
	var target Target
	var ways factory.LoginWays
	var scopes []string
	cmd := &cobra.Command{
		Use:   "login SERVER | --url URL",
		Short: "Log in at a server",
		Long:  loginHelp,
		Example: `  dowel login linear
  dowel login github --scope repo
  dowel login --url https://mcp.example.com/mcp --no-browser`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: connect.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			if err := target.setName(cmd, args); err != nil {
				return err
			}
			return runLogin(cmd.Context(), f, &target, f.NewLogin(ways), scopes)
		},
	}
	target.addFlags(cmd)
	cmd.Flags().BoolVar(&ways.NoBrowser, "no-browser", false, "only print the page, and open no browser")
	cmd.Flags().BoolVar(&ways.Device, "device", false, "print a code that you enter in a browser on any device, if the server offers that")
	cmd.MarkFlagsMutuallyExclusive("no-browser", "device")
	cmd.Flags().StringArrayVar(&scopes, "scope", nil, "also ask for this `scope` (repeatable)")
	return cmd
}

// Outcome is the JSON output of login and logout.
type Outcome struct {
	Server string `json:"server"`
	Did    string `json:"did"` // login or logout
	// Restarted is true if a running dowel has restarted the server.
	Restarted bool `json:"restarted"`
}

func runLogin(ctx context.Context, f *factory.Factory, target *Target, login auth.Login, scopes []string) error {
	if err := factory.RunningDaemon().Authorize(ctx); err != nil {
		return err
	}
	to, err := target.openAuthorization(f, login)
	if err != nil {
		return err
	}
	if err := to.Login(ctx, scopes...); err != nil {
		return explainFailure(target, err)
	}
	return writeOutcome(f, Outcome{target.label(), "login", target.restart(ctx)}, "You are logged in at %s.")
}

// explainFailure returns the error of the command for the error of a login.
func explainFailure(target *Target, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return exit.ConnectError{Server: target.label(), Err: &failedLogin{err}}
}

// failedLogin is the error of a login. It does not advise to log in.
type failedLogin struct{ err error }

func (e *failedLogin) Error() string { return "the login failed: " + e.err.Error() }

func (e *failedLogin) Unwrap() error { return e.err }

// Advice returns the advice of the error.
func (e *failedLogin) Advice() string {
	if advised, ok := errors.AsType[interface {
		error
		Advice() string
	}](e.err); ok {
		return advised.Advice()
	}
	return ""
}

// NewLogoutCommand returns the command dowel logout.
func NewLogoutCommand(f *factory.Factory) *cobra.Command {
	var target Target
	cmd := &cobra.Command{
		Use:   "logout SERVER | --url URL",
		Short: "End a login at a server",
		Long: `End a login: revoke it at the authorization server if that can, and delete it from this machine. The login is deleted also if
it could not be revoked, which is an error. A running dowel restarts the server, which then needs a login.`,
		Example: `  dowel logout linear
  dowel logout --url https://mcp.example.com/mcp`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: connect.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Parsed = true
			if err := target.setName(cmd, args); err != nil {
				return err
			}
			return runLogout(cmd.Context(), f, &target)
		},
	}
	target.addFlags(cmd)
	return cmd
}

func runLogout(ctx context.Context, f *factory.Factory, target *Target) error {
	if err := factory.RunningDaemon().Authorize(ctx); err != nil {
		return err
	}
	to, err := target.openAuthorization(f, nil)
	if err != nil {
		return err
	}
	if err := endLogin(ctx, target, to); err != nil {
		target.restart(ctx)
		return exit.ConnectError{Server: target.label(), Err: err}
	}
	return writeOutcome(f, Outcome{target.label(), "logout", target.restart(ctx)}, "You are logged out at %s.")
}

// endLogin ends a login. If the running dowel is a replica of a cluster, it does that: the cluster
// has the login, with newer tokens than this machine.
func endLogin(ctx context.Context, target *Target, to *configured.LoginTransport) error {
	running := factory.RunningDaemon()
	if s, err := running.Status(ctx); err == nil && s.Cluster != nil {
		return running.Logout(ctx, control.Login{Name: target.name, URL: to.Server(), Account: to.Account()})
	}
	return to.Logout(ctx)
}

func writeOutcome(f *factory.Factory, o Outcome, says string) error {
	if f.JSON {
		return f.WriteValue(o)
	}
	text := fmt.Sprintf(says, term.Line(o.Server))
	if o.Restarted {
		text += " The running dowel restarts the server."
	}
	f.WriteMessage("%s", text)
	return nil
}
