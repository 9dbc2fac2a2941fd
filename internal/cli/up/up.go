// Package up is dowel up: it runs the daemon and shows the state of its servers, or serves the
// gateway over standard input and output.
package up

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/chathost"
	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

// Options are the flags of dowel up.
type Options struct {
	factory.Places
	daemon.ListenOptions
	stdio      bool
	toolSearch bool
	record     string
	console    string
	cluster    string
	creds      string // of cluster
	detach     bool
	newKey     bool
}

// NewCommand returns the command dowel up.
func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all your servers, and one MCP endpoint in front of them",
		Long: `Run all servers of your configuration until Ctrl-C, and serve them through one MCP server, the gateway. All servers together
are at http://` + daemon.DefaultAddress + `/mcp, a single server is at /mcp/NAME. Clients of the 2024 protocol use /sse,
clients of WebSocket /ws and /ws/NAME.
dowel console shows all of it in a browser; at an address that other machines can reach it is off without --console.

The servers come from dowel.json in the current folder and in your configuration folder, and from .mcp.json in the current
folder. If these files define no servers, dowel runs its built-in ones. Servers of a project wait until you allow them with
dowel trust. dowel watches the files: a change restarts only the servers that it affects.

With --stdio, dowel serves the gateway over standard input and output to the client that started it. All clients share the
servers of the dowel that is already running. When that dowel ends, this process takes over.

With --detach, dowel runs in the background until dowel down. dowel service install starts it at each login.

HTTP clients must send the gateway's token, also on this machine: dowel status --token prints the header. Clients that start
dowel up --stdio need no token, and dowel's own commands need none. dowel export --to TOOL sets up a client.`,
		Example: `  dowel up
  dowel up --detach
  dowel up --http 0.0.0.0:7800 --host dowel.example.com
  claude mcp add dowel -- dowel up --stdio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.console != "" && !slices.Contains(daemon.ConsoleModes, opts.console) {
				return exit.Usagef("--console %s: want %s", opts.console, strings.Join(daemon.ConsoleModes, ", "))
			}
			if opts.cluster != "" && opts.stdio {
				return exit.Usagef("--cluster and --stdio exclude each other: a replica serves its clients over HTTP")
			}
			if opts.creds != "" && opts.cluster == "" {
				return exit.Usagef("--cluster-creds needs --cluster, the URL of the NATS servers")
			}
			if opts.detach && opts.stdio {
				return exit.Usagef("--detach and --stdio exclude each other: a client talks to dowel up --stdio over the streams that it has opened")
			}
			f.Parsed = true
			if opts.detach {
				return startDetached(cmd.Context(), f, opts, detachedArgs(cmd.Flags()))
			}
			return runUp(cmd.Context(), f, opts)
		},
	}
	flags := cmd.Flags()
	opts.Places.AddFlags(cmd)
	flags.StringVar(&opts.Address, "http", "", "the `address` of the gateway (default "+daemon.DefaultAddress+")")
	flags.BoolVar(&opts.stdio, "stdio", false, "serve the gateway over standard input and output to the client that starts dowel")
	flags.BoolVarP(&opts.detach, "detach", "d", false, "start dowel in the background and return when it serves; dowel down ends it")
	flags.BoolVar(&opts.toolSearch, "tool-search", false, "offer the pinned tools and a search, instead of all tools")
	flags.StringVar(&opts.record, "record", "", "write all messages to a new file in this `folder`, at most 1 GiB; dowel wire FILE shows it")
	flags.StringVar(&opts.console, "console", "", "the `mode` of the page of dowel console: on, read (it changes nothing) or off")
	flags.BoolVar(&opts.newKey, "new-key", false, "seal the ids of sessions and tasks with a new key; the older keys open them for 30 more days")
	flags.StringVar(&opts.cluster, "cluster", "", "serve the clients of all dowels with this `URL` as one, as in nats://HOST:4222/NAME; see the guide")
	flags.StringVar(&opts.creds, "cluster-creds", "", "a `file` with the credentials of the NATS user, in place of a password in the URL of --cluster")
	flags.StringSliceVar(&opts.Hosts, "host", nil, "a host `name` that clients use for the gateway; * allows any")
	flags.StringSliceVar(&opts.Origins, "origin", nil, "allow web pages of this `origin` to use the gateway, such as https://app.example.com; * allows any")
	return cmd
}

func runUp(ctx context.Context, f *factory.Factory, opts Options) error {
	o := f.DaemonOptions(&opts.Places)
	o.ListenOptions, o.ToolSearch, o.Record, o.Console = opts.ListenOptions, opts.toolSearch, opts.record, daemon.ConsoleMode(opts.console)
	o.RenewKey = opts.newKey
	o.Cluster, o.ClusterCredentials = opts.cluster, opts.creds
	o.Agents = func(hub *daemon.AgentHub) control.ChatHost { return chathost.New(f, opts.Places, hub) }
	if opts.stdio {
		return serveStdio(ctx, f, o)
	}
	if term.Terminal(f.Stdin) != nil && f.Stdout.IsTerminal() {
		in := term.NewLines(f.Stdin)
		o.AskTrust = func(ctx context.Context, source *configured.Source, u configured.Untrusted) error {
			return consent.AskTrust(ctx, f, source, u, in, consent.Answer{})
		}
	}
	d, err := daemon.Start(ctx, o)
	if err != nil {
		return err
	}
	defer d.Stop(ctx)
	shown, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.StopRequested():
			cancel()
		case <-shown.Done():
		}
	}()
	return (&statusView{f, d}).showStatus(shown)
}

// serveStdio serves the gateway of the running daemon over standard input and output. If no daemon
// runs, or when it ends, this process becomes the daemon until another process asks to be it. The
// client does not notice the change.
func serveStdio(ctx context.Context, f *factory.Factory, o daemon.Options) error {
	o.Stdio = true
	proxy, err := daemon.Join(ctx, o)
	if err != nil {
		return err
	}
	defer proxy.Close(ctx)
	if term.Terminal(f.Stdin) != nil {
		f.Notice("Reading JSON-RPC from this terminal; Ctrl-D ends it. Clients usually start this command themselves: dowel export --to NAME")
	}
	return stdio.Serve(ctx, proxy.Handler(), stdio.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(f.LogHandler())}})
}

// statusView shows the state of a daemon's servers.
type statusView struct {
	*factory.Factory
	daemon *daemon.Daemon
}

// showStatus shows the state of the servers and its changes until ctx ends: a table on a terminal,
// lines otherwise.
func (v *statusView) showStatus(ctx context.Context) error {
	events := v.daemon.Hub.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	if v.JSON {
		factory.WriteJSONLine(v.Stdout, v.daemon.Status())
	} else {
		v.WriteMessage("%s", v.startMessage())
	}
	if v.Stdout.IsTerminal() && !v.JSON {
		return v.showTable(ctx)
	}
	lastShown := map[string]string{}
	for _, u := range v.daemon.Hub.Upstreams() {
		if s := u.State(); s.Status.Held() && !v.JSON { // its event came before Events began
			fmt.Fprintln(v.Stdout, v.formatEvent(hub.Event{Time: s.Since, Upstream: u.Name(), State: s}))
		}
	}
	for e := range events {
		switch {
		case v.JSON:
			factory.WriteJSONLine(v.Stdout, control.EventOf(e))
		case e.Kind == hub.StateChanged && v.isNews(lastShown, e):
			fmt.Fprintln(v.Stdout, v.formatEvent(e))
		}
	}
	return nil // stopped by Ctrl-C
}

// isNews reports whether an event differs from the last one shown for its server. A failing server
// is started again and again, and each attempt sends the same event. lastShown is keyed by server.
func (v *statusView) isNews(lastShown map[string]string, e hub.Event) bool {
	s := e.State
	if s.Status == hub.Starting && s.Attempt > 0 {
		return false
	}
	text := s.Status.String() + " " + s.Cause
	if s.Diagnosis != nil {
		text = s.Status.String() + " " + s.Diagnosis.Summary
	}
	if lastShown[e.Upstream] == text && s.Status != hub.Ready {
		return false
	}
	lastShown[e.Upstream] = text
	return true
}

func (v *statusView) startMessage() string {
	w := v.daemon.Web.Load()
	text := "The gateway is at " + w.Url + "/mcp. dowel console shows it in a browser. Ctrl-C ends it."
	switch {
	case w.Auth:
		text = "The gateway is at " + w.Url + "/mcp. Ctrl-C ends it.\nClients send access tokens of the authorization servers in gateway.auth."
	case w.Open:
		text += "\nEveryone on this machine may use it: gateway.open is set."
	default:
		text += "\nHTTP clients send its token: dowel status --token. Clients that start dowel up --stdio need none: dowel export --to TOOL."
	}
	if files := v.daemon.Files(); len(files) > 0 && len(v.daemon.Hub.Upstreams()) == 0 {
		return "No servers in " + strings.Join(files, ", ") + ". Copy those of your other tools with dowel import, or add one with dowel add.\n" + text
	} else if len(files) > 0 {
		return "Servers of " + strings.Join(files, ", ") + ".\n" + text
	}
	return "You have no dowel.json yet, so dowel runs its built-in servers. Copy the servers of your other tools with dowel import, or add one with dowel add.\n" + text
}

// formatEvent returns a line about a server's new state.
func (v *statusView) formatEvent(e hub.Event) string {
	text := e.Time.Format(time.TimeOnly) + " " + term.Line(e.Upstream) + ": " + e.State.Status.String()
	if u := v.daemon.Hub.Upstream(e.Upstream); e.State.Status == hub.Ready && u != nil {
		s := control.Describe(v.daemon.Hub, u)
		return fmt.Sprintf("%s, %s %s, %d tools, %s", text, s.Era, s.Revision, s.Tools, term.Line(s.Cause))
	}
	if d := e.State.Diagnosis; d != nil && e.State.Status != hub.Starting {
		return text + ": " + term.FirstLine(d.Summary) + " → " + term.Line(d.Advice)
	}
	if e.State.Cause != "" {
		text += ": " + term.Line(e.State.Cause)
	}
	return text
}

// showTable keeps a table of the servers on the terminal until ctx ends.
func (v *statusView) showTable(ctx context.Context) error {
	refresh := time.NewTicker(250 * time.Millisecond)
	defer refresh.Stop()
	for {
		lines := v.formatTable(control.DescribeAll(v.daemon.Hub), v.Stdout.Columns()-1, v.Stdout.Rows()-1)
		v.Stdout.SetStatusLines(strings.Join(lines, "\n") + "\n")
		select {
		case <-refresh.C:
		case <-ctx.Done():
			return nil // stopped by Ctrl-C
		}
	}
}
