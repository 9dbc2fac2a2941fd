package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

// defaultAddress is where the gateway is.
const defaultAddress = "127.0.0.1:7800"

// upFlags say how the servers are run.
type upFlags struct {
	places
	webFlags
	stdio      bool
	toolSearch bool
}

func (a *app) upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all your servers, and one MCP endpoint in front of them",
		Long: `Run the servers of your configuration, all at the same time, and keep them running until Ctrl-C. In front of them is one MCP
server, the gateway: all of them together at http://` + defaultAddress + `/mcp, one of them at /mcp/NAME, and for clients of 2024
at /sse. Its page, at http://` + defaultAddress + `/, tells how they are.

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
			a.began = true
			return a.up(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.places.register(cmd)
	flags.StringVar(&f.address, "http", "", "the `address` of the gateway (default "+defaultAddress+")")
	flags.BoolVar(&f.stdio, "stdio", false, "serve the gateway over standard input and output, as the child of a client")
	flags.BoolVar(&f.toolSearch, "tool-search", false, "offer a search of tools in place of all of them, and the pinned ones")
	flags.StringSliceVar(&f.hosts, "host", nil, "a `name` under which the gateway is reached; * is any")
	flags.StringSliceVar(&f.origins, "origin", nil, "an `origin` whose web pages may use the gateway, such as https://app.example.com; * is any")
	return cmd
}

func (a *app) up(ctx context.Context, f upFlags) error {
	if f.stdio {
		return a.upStdio(ctx, f)
	}
	place, err := a.takePlace(ctx, f.socket())
	if err != nil {
		return err
	}
	h, err := a.moveIn(ctx, place, f, "dowel begins")
	if err != nil {
		return err
	}
	defer h.moveOut(ctx)
	return h.show(ctx)
}

// takePlace makes this process the dowel that is running. One that is ending is waited for, and one that serves the client
// that has started it, and nobody else, makes room and goes on through this one.
func (a *app) takePlace(ctx context.Context, socket string) (*control.Place, error) {
	other := control.NewClient(socket)
	for end, told := time.Now().Add(4*patience), false; ; told = true {
		place, err := control.Listen(socket)
		switch {
		case err == nil:
			return place, nil
		case !errors.Is(err, control.ErrRunning):
			return nil, fmt.Errorf("other programs could not be let in: %w", err)
		}
		if s, e := other.Status(ctx); e == nil && s.Gateway != "" && !s.Ending || ctx.Err() != nil || time.Now().After(end) {
			return nil, fmt.Errorf("%w: see dowel status", err)
		}
		_ = other.Yield(ctx) // it may be on its way out already
		if !told {
			a.notice("Waiting for the dowel that is running to make room.")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// show tells how the servers are, until ctx ends.
func (h *house) show(ctx context.Context) error {
	a := h.app
	events := h.hub.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	if a.json {
		encodeLine(a.stdout, h.Status())
	} else {
		fmt.Fprintln(a.stdout, h.greeting())
	}
	if a.stdout.file != nil && !a.json {
		return h.live(ctx)
	}
	told := map[string]string{}
	for _, u := range h.hub.Upstreams() {
		if s := u.State(); s.Status.Held() && !a.json { // which has happened before anybody listened
			fmt.Fprintln(a.stdout, h.eventLine(hub.Event{Time: s.Since, Upstream: u.Name(), State: s}))
		}
	}
	for e := range events {
		switch {
		case a.json:
			encodeLine(a.stdout, control.EventOf(e))
		case e.Kind == hub.StateChanged && h.news(told, e):
			fmt.Fprintln(a.stdout, h.eventLine(e))
		}
	}
	return nil // it was told to end
}

// news reports whether an event says anything that the one told last of that server has not: a server that fails is tried again
// and again.
func (h *house) news(told map[string]string, e hub.Event) bool {
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

func (h *house) greeting() string {
	w := h.web.Load()
	text := "The gateway is at " + w.url + "/mcp, its page at " + w.url + "/. Ctrl-C ends it."
	if w.token {
		text += "\nOther machines reach it too. Whoever uses it shows its token: dowel status --token."
	}
	if files := h.files(); len(files) > 0 && len(h.hub.Upstreams()) == 0 {
		return "There are no servers in " + strings.Join(files, ", ") + ": add some with dowel servers add, or dowel import.\n" + text
	} else if len(files) > 0 {
		return "Servers of " + strings.Join(files, ", ") + ".\n" + text
	}
	return "There is no dowel.json yet: these are the servers that are built into dowel. Add your own with dowel servers add.\n" + text
}

// eventLine is what happened to a server, for who reads lines.
func (h *house) eventLine(e hub.Event) string {
	text := e.Time.Format(time.TimeOnly) + " " + line(e.Upstream) + ": " + e.State.Status.String()
	if u := h.hub.Upstream(e.Upstream); e.State.Status == hub.Ready && u != nil {
		s := control.Describe(u, h.hub.Catalog())
		return fmt.Sprintf("%s, %s %s, %d tools, %s", text, s.Era, s.Revision, s.Tools, line(s.Cause))
	}
	if d := e.State.Diagnosis; d != nil && e.State.Status != hub.Starting {
		return text + ": " + firstLine(d.Summary) + " → " + line(d.Advice)
	}
	if e.State.Cause != "" {
		text += ": " + line(e.State.Cause)
	}
	if e.State.Status == hub.NeedsTrust {
		text += " → dowel trust " + line(e.Upstream)
	}
	return text
}

// live keeps a table on the terminal.
func (h *house) live(ctx context.Context) error {
	a := h.app
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for {
		lines := fitting(a.table(control.DescribeAll(h.hub), a.stdout.columns()-1), a.stdout.rows()-2)
		a.stdout.stand(strings.Join(lines, "\n") + "\n")
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil // it was told to end
		}
	}
}

// fitting returns as many lines as there is room for, and says how many are left out.
func fitting(lines []string, rows int) []string {
	if len(lines) <= rows || rows < 2 {
		return lines
	}
	return append(lines[:rows-1:rows-1], fmt.Sprintf("… and %d lines more: dowel status", len(lines)-rows+1))
}

// runtimeDir is the folder of what lives as long as the user's session; empty where there is none.
func runtimeDir() string { return os.Getenv("XDG_RUNTIME_DIR") }
