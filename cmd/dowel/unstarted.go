package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/spf13/cobra"
)

// unstarted are the servers that dowel up would have: those of the files, else those that are built in.
type unstarted struct {
	definitions []hub.Definition
	set         *config.Set
	choices     *state.State
}

func (a *app) unstarted() (u unstarted, err error) {
	o, err := new(places).config()
	if err != nil {
		return u, err
	}
	if u.choices, err = a.choices(); err != nil {
		return u, err
	}
	source := configured.New(hub.New(nil), configured.Options{Config: o, Choices: u.choices, Fallback: builtIn(), Logger: slog.New(a.notices())})
	u.definitions = source.Look()
	u.set = source.Set()
	return u, nil
}

// unconfigured reports whether no file says which servers there are, so that the built-in ones are started.
func unconfigured(set *config.Set) bool {
	return !slices.ContainsFunc(set.Files, func(f config.File) bool { return f.Lists || f.Broken })
}

func (u unstarted) names() (names []string) {
	for _, d := range u.definitions {
		names = append(names, d.Name)
	}
	return names
}

func (u unstarted) server(name string) *hub.Definition {
	i := slices.IndexFunc(u.definitions, func(d hub.Definition) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &u.definitions[i]
}

// keepSwitch switches servers on or off for the next dowel that runs.
func (a *app) keepSwitch(verb string, names []string) error {
	before, err := a.unstarted()
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case before.server(name) != nil:
		case actsHere(name):
			return usagef("%s is built in, and nothing starts it but a command that names it: add it to your servers with dowel servers add %[1]s", name)
		case slices.Contains(builtin.Names(), name):
			return usagef("%s is built in, and not started by itself since you have servers of your own: add it with dowel servers add %[1]s", name)
		default:
			return usagef("%w: %s%s", control.ErrNoServer, name, suggestion(name, before.names()))
		}
	}
	for _, name := range names {
		if err := before.choices.SetEnabled(name, verb == "enable"); err != nil {
			return err
		}
	}
	after, err := a.unstarted()
	if err != nil {
		return err
	}
	for _, name := range names {
		o, now := outcome{Server: name, Did: verb}, "no dowel is running, and dowel up will start it"
		if d := after.server(name); d != nil && d.Hold.Status != 0 {
			o.Status, o.Cause = d.Hold.Status, d.Hold.Reason
			now = "no dowel is running, and " + o.Status.String() + ": " + line(o.Cause)
			if o.Status == hub.Disabled {
				now = "no dowel is running, and dowel up will not start it"
			}
		}
		a.outcome(o, now)
	}
	return nil
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the servers and how they are", Args: cobra.NoArgs,
		Long: `List the servers of the running dowel, and how they are. Where none is running: those that dowel up would have, and what
keeps it from starting them.`,
		Example: "  dowel servers list\n  dowel servers list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return a.listServers(cmd.Context())
		},
	}
}

func (a *app) listServers(ctx context.Context) error {
	s, err := running().Status(ctx)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return a.listUnstarted()
	case err != nil:
		return err
	case a.json:
		return a.value(s.Servers)
	}
	for _, text := range a.table(s.Servers, a.stdout.width()) {
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

// unstartedLine is a server that is not running, as a program reads it.
type unstartedLine struct {
	Name string `json:"name"`
	// Status is why dowel up would not start it, or "not running".
	Status string `json:"status"`
	Cause  string `json:"cause,omitzero"`
	Origin string `json:"origin,omitzero"`
	Source string `json:"source,omitzero"`
}

func (a *app) listUnstarted() error {
	u, err := a.unstarted()
	if err != nil {
		return err
	}
	lines := []unstartedLine{}
	rows := [][]string{{"SERVER", "STATE", "FROM", "WHAT"}}
	for _, d := range u.definitions {
		l := unstartedLine{d.Name, "not running", d.Hold.Reason, d.Origin, d.Source}
		if d.Hold.Status != 0 {
			l.Status = d.Hold.Status.String()
		}
		lines = append(lines, l)
		rows = append(rows, []string{line(l.Name), l.Status, line(l.Source), line(l.Origin)})
	}
	if a.json {
		return a.value(lines)
	}
	width := a.stdout.width()
	if len(lines) == 0 {
		fmt.Fprintln(a.stdout, "There are no servers: add one with dowel servers add, or take over those of other tools with dowel import.")
		return nil
	}
	widths := columnWidths(rows)
	for i, row := range rows {
		fmt.Fprintln(a.stdout, shorten(layOut(row, widths), width))
		if i > 0 && lines[i-1].Cause != "" {
			fmt.Fprintln(a.stdout, a.stdout.dim(shorten("    "+line(lines[i-1].Cause), width)))
		}
	}
	a.note("No dowel is running: dowel up starts them.")
	return nil
}
