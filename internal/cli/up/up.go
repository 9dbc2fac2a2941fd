// Package up is dowel up: it runs the daemon and shows the state of its servers, or serves the
// gateway over standard input and output.
package up

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

// Options say how the servers are run.
type Options struct {
	factory.Places
	daemon.ListenOptions
	stdio      bool
	toolSearch bool
}

func NewCommand(f *factory.Factory) *cobra.Command {
	var opts Options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all your servers, and one MCP endpoint in front of them",
		Long: `Run the servers of your configuration, all at the same time, and keep them running until Ctrl-C. In front of them is one MCP
server, the gateway: all of them together at http://` + daemon.DefaultAddress + `/mcp, one of them at /mcp/NAME, and for clients of 2024
at /sse. Its page, at http://` + daemon.DefaultAddress + `/, tells how they are.

The servers are those of dowel.json in the current folder and in your configuration folder, and of .mcp.json in the current
folder; where there are none, the ones that are built into dowel. Servers that come with a project wait until you allow them:
dowel trust. Files are watched: a change restarts exactly the servers that it changes.

With --stdio the gateway is served over standard input and output instead, as the child of a client. Where a dowel is running
already it is that one's, so that all clients share the same servers; when that one ends, this process takes its place.

Other machines need the gateway's token, which is made when it is first served to them: dowel status --token.`,
		Example: `  dowel up
  dowel up --http 0.0.0.0:7800 --host dowel.example.com
  claude mcp add dowel -- dowel up --stdio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return runUp(cmd.Context(), f, opts)
		},
	}
	flags := cmd.Flags()
	opts.Places.AddFlags(cmd)
	flags.StringVar(&opts.Address, "http", "", "the `address` of the gateway (default "+daemon.DefaultAddress+")")
	flags.BoolVar(&opts.stdio, "stdio", false, "serve the gateway over standard input and output, as the child of a client")
	flags.BoolVar(&opts.toolSearch, "tool-search", false, "offer a search of tools in place of all of them, and the pinned ones")
	flags.StringSliceVar(&opts.Hosts, "host", nil, "a `name` under which the gateway is reached; * is any")
	flags.StringSliceVar(&opts.Origins, "origin", nil, "an `origin` whose web pages may use the gateway, such as https://app.example.com; * is any")
	return cmd
}

func runUp(ctx context.Context, f *factory.Factory, opts Options) error {
	o := f.DaemonOptions(&opts.Places)
	o.ListenOptions, o.ToolSearch = opts.ListenOptions, opts.toolSearch
	if opts.stdio {
		return serveStdio(ctx, f, o)
	}
	if term.Terminal(f.Stdin) != nil && f.Stdout.IsTerminal() {
		in := term.NewLines(f.Stdin)
		o.AskTrust = func(ctx context.Context, source *configured.Source, u configured.Untrusted) error {
			return consent.AskTrust(ctx, f, source, u, in, false)
		}
	}
	h, err := daemon.Start(ctx, o)
	if err != nil {
		return err
	}
	defer h.Stop(ctx)
	return (&statusView{f, h}).showStatus(ctx)
}

// serveStdio serves the gateway of the dowel that is running over standard input and output. Where none is, or when it has ended,
// this process becomes the one that is, until another wants to be. Its client notices nothing of that.
func serveStdio(ctx context.Context, f *factory.Factory, o daemon.Options) error {
	o.Stdio = true
	t, err := daemon.Join(ctx, o)
	if err != nil {
		return err
	}
	defer t.Close(ctx)
	if term.Terminal(f.Stdin) != nil {
		f.Notice("Serving all servers to who writes JSON-RPC here; Ctrl-D ends it. Clients start it by themselves: dowel export --to NAME")
	}
	return stdio.Serve(ctx, t.Handler(), stdio.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(f.LogHandler())}})
}

// statusView shows how the servers of a daemon are.
type statusView struct {
	*factory.Factory
	daemon *daemon.Daemon
}

// showStatus tells how the servers are, until ctx ends.
func (v *statusView) showStatus(ctx context.Context) error {
	events := v.daemon.Hub.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	if v.JSON {
		factory.WriteJSONLine(v.Stdout, v.daemon.Status())
	} else {
		fmt.Fprintln(v.Stdout, v.startMessage())
	}
	if v.Stdout.IsTerminal() && !v.JSON {
		return v.showTable(ctx)
	}
	told := map[string]string{}
	for _, u := range v.daemon.Hub.Upstreams() {
		if s := u.State(); s.Status.Held() && !v.JSON { // which has happened before anybody listened
			fmt.Fprintln(v.Stdout, v.formatEvent(hub.Event{Time: s.Since, Upstream: u.Name(), State: s}))
		}
	}
	for e := range events {
		switch {
		case v.JSON:
			factory.WriteJSONLine(v.Stdout, control.EventOf(e))
		case e.Kind == hub.StateChanged && v.isNews(told, e):
			fmt.Fprintln(v.Stdout, v.formatEvent(e))
		}
	}
	return nil // it was told to end
}

// isNews reports whether an event says anything that the one told last of that server has not: a server that fails is tried again
// and again.
func (v *statusView) isNews(told map[string]string, e hub.Event) bool {
	s := e.State
	if s.Status == hub.Starting && s.Attempt > 0 {
		return false
	}
	what := s.Status.String() + " " + s.Cause
	if s.Diagnosis != nil {
		what = s.Status.String() + " " + s.Diagnosis.Summary
	}
	if told[e.Upstream] == what && s.Status != hub.Ready {
		return false
	}
	told[e.Upstream] = what
	return true
}

func (v *statusView) startMessage() string {
	w := v.daemon.Web.Load()
	text := "The gateway is at " + w.Url + "/mcp, its page at " + w.Url + "/. Ctrl-C ends it."
	if w.Token {
		text += "\nOther machines reach it too. Whoever uses it shows its token: dowel status --token."
	}
	if files := v.daemon.Files(); len(files) > 0 && len(v.daemon.Hub.Upstreams()) == 0 {
		return "There are no servers in " + strings.Join(files, ", ") + ": add some with dowel servers add, or dowel import.\n" + text
	} else if len(files) > 0 {
		return "Servers of " + strings.Join(files, ", ") + ".\n" + text
	}
	return "There is no dowel.json yet: these are the servers that are built into dowel. Add your own with dowel servers add.\n" + text
}

// formatEvent is what happened to a server, for who reads lines.
func (v *statusView) formatEvent(e hub.Event) string {
	text := e.Time.Format(time.TimeOnly) + " " + term.Line(e.Upstream) + ": " + e.State.Status.String()
	if u := v.daemon.Hub.Upstream(e.Upstream); e.State.Status == hub.Ready && u != nil {
		s := control.Describe(u, v.daemon.Hub.Catalog())
		return fmt.Sprintf("%s, %s %s, %d tools, %s", text, s.Era, s.Revision, s.Tools, term.Line(s.Cause))
	}
	if d := e.State.Diagnosis; d != nil && e.State.Status != hub.Starting {
		return text + ": " + term.FirstLine(d.Summary) + " → " + term.Line(d.Advice)
	}
	if e.State.Cause != "" {
		text += ": " + term.Line(e.State.Cause)
	}
	if e.State.Status == hub.NeedsTrust {
		text += " → dowel trust " + term.Line(e.Upstream)
	}
	return text
}

// showTable keeps a table on the terminal.
func (v *statusView) showTable(ctx context.Context) error {
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for {
		lines := cutLines(display.ServerTable(v.Factory, control.DescribeAll(v.daemon.Hub), v.Stdout.Columns()-1), v.Stdout.Rows()-2)
		v.Stdout.SetStatusLines(strings.Join(lines, "\n") + "\n")
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil // it was told to end
		}
	}
}

// cutLines returns as many lines as there is room for, and says how many are left out.
func cutLines(lines []string, rows int) []string {
	if len(lines) <= rows || rows < 2 {
		return lines
	}
	return append(lines[:rows-1:rows-1], fmt.Sprintf("… and %d lines more: dowel status", len(lines)-rows+1))
}
