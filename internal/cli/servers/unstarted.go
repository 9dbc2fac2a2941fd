package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

// configuredServers are the servers that dowel up would run: the servers of the files, or the
// built-in ones if the files define none.
type configuredServers struct {
	definitions []hub.Definition
	set         *config.Set
	choices     *state.State
}

func readConfigured(f *factory.Factory) (c configuredServers, err error) {
	o, err := new(factory.Places).ConfigOptions()
	if err != nil {
		return c, err
	}
	if c.choices, err = f.OpenState(); err != nil {
		return c, err
	}
	source := configured.New(nil, configured.Options{Config: o, Choices: c.choices, Logins: f.OpenLogins(), Fallback: daemon.BuiltInServers(), Logger: slog.New(f.LogHandler())})
	c.definitions = source.Look()
	c.set = source.Set()
	return c, nil
}

// usesBuiltIn reports whether dowel starts its built-in servers because no configuration file has a
// list of servers. A file that cannot be read may have one.
func usesBuiltIn(set *config.Set) bool {
	return !slices.ContainsFunc(set.Files, func(file config.File) bool { return file.Lists || file.Broken })
}

func (c configuredServers) serverNames() (names []string) {
	for _, d := range c.definitions {
		names = append(names, d.Name)
	}
	return names
}

// definition returns the definition of a server, or nil.
func (c configuredServers) definition(name string) *hub.Definition {
	i := slices.IndexFunc(c.definitions, func(d hub.Definition) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &c.definitions[i]
}

// saveSwitch enables or disables servers for the next start while no daemon runs. verb is "enable"
// or "disable".
func saveSwitch(f *factory.Factory, verb string, names []string) error {
	before, err := readConfigured(f)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case before.definition(name) != nil:
		case daemon.IsLocal(name):
			return exit.Usagef("%s is built in and only runs when a command names it; add it to your servers with dowel add %[1]s", name)
		case slices.Contains(builtin.Names(), name):
			return exit.Usagef("%s is built in and not among your own servers; add it with dowel add %[1]s", name)
		default:
			return exit.Usagef("%w: %s%s", control.ErrNoServer, name, suggest.Hint(name, before.serverNames()))
		}
	}
	for _, name := range names {
		if err := before.choices.SetEnabled(name, verb == "enable"); err != nil {
			return err
		}
	}
	after, err := readConfigured(f)
	if err != nil {
		return err
	}
	for _, name := range names {
		o, text := Outcome{Server: name, Did: verb}, "dowel is not running; dowel up will start it"
		if d := after.definition(name); d != nil && d.Hold.Status != 0 {
			o.Status, o.Cause = d.Hold.Status, d.Hold.Reason
			text = "dowel is not running; " + o.Status.String() + ": " + term.Line(o.Cause)
			if o.Status == hub.Disabled {
				text = "dowel is not running; dowel up will not start it"
			}
		}
		writeOutcome(f, o, text)
	}
	return nil
}

func listCommand(f *factory.Factory) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the servers and their states", Args: cobra.NoArgs,
		Long: `List the servers of the running dowel and their states. If dowel is not running, list the servers that dowel up would start,
and the reason for each server that it would not start.`,
		Example: "  dowel servers list\n  dowel servers list --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Parsed = true
			return listServers(cmd.Context(), f)
		},
	}
}

func listServers(ctx context.Context, f *factory.Factory) error {
	s, err := factory.RunningDaemon().Status(ctx)
	switch {
	case errors.Is(err, control.ErrNotRunning):
		return listConfigured(f)
	case err != nil:
		return err
	case f.JSON:
		return f.WriteValue(s.Servers)
	}
	for _, text := range display.ServerTable(f, s.Servers, f.Stdout.Width()) {
		fmt.Fprintln(f.Stdout, text)
	}
	return nil
}

// configuredLine is the JSON output for a server while no daemon runs.
type configuredLine struct {
	Name string `json:"name"`
	// Status tells why dowel up would not start the server, or is "not running".
	Status string `json:"status"`
	Cause  string `json:"cause,omitzero"`
	Origin string `json:"origin,omitzero"`
	Source string `json:"source,omitzero"`
}

func listConfigured(f *factory.Factory) error {
	unstarted, err := readConfigured(f)
	if err != nil {
		return err
	}
	lines := []configuredLine{}
	rows := [][]string{{"SERVER", "STATE", "SOURCE", "DETAIL"}}
	for _, d := range unstarted.definitions {
		l := configuredLine{d.Name, "not running", d.Hold.Reason, d.Origin, d.Source}
		if d.Hold.Status != 0 {
			l.Status = d.Hold.Status.String()
		}
		lines = append(lines, l)
		rows = append(rows, []string{term.Line(l.Name), l.Status, term.Line(l.Source), term.Line(l.Origin)})
	}
	if f.JSON {
		return f.WriteValue(lines)
	}
	width := f.Stdout.Width()
	if len(lines) == 0 {
		f.WriteMessage("You have no servers. Add one with dowel add, or copy the servers of other tools with dowel import.")
		return nil
	}
	widths := term.ColumnWidths(rows)
	for i, row := range rows {
		fmt.Fprintln(f.Stdout, term.Shorten(term.LayOutRow(row, widths), width))
		if i > 0 && lines[i-1].Cause != "" {
			fmt.Fprintln(f.Stdout, f.Stdout.Dim(term.Shorten("    "+term.Line(lines[i-1].Cause), width)))
		}
	}
	f.WriteNote("dowel is not running; dowel up starts these servers.")
	return nil
}
