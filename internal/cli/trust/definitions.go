package trust

import (
	"context"
	"fmt"
	"slices"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
)

// ChangedLine is the JSON output for a server with changed definitions.
type ChangedLine struct {
	Name     string                    `json:"name"`
	Changes  []client.DefinitionChange `json:"changes"`
	Accepted bool                      `json:"accepted"`
}

// acceptDefinitions shows the changed definitions of servers, of all servers without names, and
// asks whether they are accepted.
func acceptDefinitions(ctx context.Context, f *factory.Factory, where factory.Places, names []string, opts Options) error {
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	servers, err := configuredServers(where, names)
	if err != nil {
		return err
	}
	in, all := term.NewLines(f.Stdin), []ChangedLine{}
	for _, s := range servers {
		log := configured.DefinitionLog(store, s)
		found, err := findChanges(ctx, log, s.Name)
		if err != nil {
			return err
		}
		changes := found.changes
		if len(changes) == 0 {
			continue
		}
		line := ChangedLine{Name: s.Name, Changes: changes, Accepted: opts.yes}
		if !f.JSON {
			showChanges(f, s.Name, changes)
			if line.Accepted, err = confirmChanges(ctx, f, s.Name, in, opts.yes); err != nil {
				return err
			}
		}
		if line.Accepted {
			if err := found.accept(ctx, changes...); err != nil {
				return err
			}
			if !f.JSON {
				fmt.Fprintln(f.Stdout, f.Stdout.Green("accepted"))
			}
		}
		all = append(all, line)
	}
	editing.ReloadDaemon(ctx, f)
	switch {
	case f.JSON:
		return f.WriteValue(all)
	case len(all) == 0:
		fmt.Fprintln(f.Stdout, "No definition has changed.")
	}
	return nil
}

// configuredServers returns the entries of the named servers, or all entries.
func configuredServers(where factory.Places, names []string) (servers []*config.Server, err error) {
	o, err := where.ConfigOptions()
	if err != nil {
		return nil, err
	}
	set := config.Load(o)
	if len(names) == 0 {
		return set.Servers, nil
	}
	var known []string
	for _, s := range set.Servers {
		known = append(known, s.Name)
	}
	for _, name := range names {
		s := set.Server(name)
		if s == nil {
			return nil, exit.Usagef("no server of your configuration is called %s%s", name, suggest.Hint(name, known))
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// changesOf are the changed definitions of a server.
type changesOf struct {
	server  string
	changes []client.DefinitionChange
	log     client.DefinitionLog // of this machine
	running *control.Client      // that has seen the changes; nil if only the log has them
}

// findChanges returns the changed definitions of a server: as the running dowel sees them, or else
// as they were seen last. A replica keeps what was accepted in its cluster, so only it knows the
// changes.
func findChanges(ctx context.Context, log client.DefinitionLog, server string) (*changesOf, error) {
	found := &changesOf{server: server, log: log}
	running := factory.RunningDaemon()
	if status, err := running.Status(ctx); err == nil {
		for _, s := range status.Servers {
			if s.Name != server || s.Changed == nil && status.Cluster == nil {
				continue
			}
			found.running = running
			for _, c := range s.Changed {
				found.changes = append(found.changes, c.DefinitionChange)
			}
			return found, nil
		}
	}
	record, err := definitions.Read(log)
	found.changes = record.Changes()
	return found, err
}

// accept accepts changes where they were found.
func (o *changesOf) accept(ctx context.Context, changes ...client.DefinitionChange) error {
	if o.running != nil {
		return o.running.AcceptDefinitions(ctx, o.server, changes...)
	}
	return client.AcceptDefinitions(o.log, changes...)
}

// showChanges shows the changed definitions of a server with their differences.
func showChanges(f *factory.Factory, server string, changes []client.DefinitionChange) {
	for _, c := range changes {
		fmt.Fprintf(f.Stdout, "%s: the %s has changed, seen %s\n", f.Stdout.Bold(term.Line(server)), term.Line(control.Changed{DefinitionChange: c, LocalName: c.Name}.Words()), c.Time.Local().Format("2006-01-02 15:04"))
		for _, line := range c.Lines {
			fmt.Fprintln(f.Stdout, "  "+term.RevealLine(line))
		}
	}
}

// confirmChanges asks whether the shown definitions of a server are accepted. Without a terminal,
// it shows how to accept them.
func confirmChanges(ctx context.Context, f *factory.Factory, server string, in *term.Lines, yes bool) (bool, error) {
	if !yes && term.Terminal(f.Stdin) == nil {
		fmt.Fprintln(f.Stdout, "  accept this on a terminal, or with: dowel trust --definitions "+term.Line(server)+" --yes")
		return false, nil
	}
	if !yes {
		agreed, err := consent.Ask(ctx, f, in, "Accept the definitions of "+term.Line(server)+" as they are now?")
		if err != nil || !agreed {
			return false, err
		}
	}
	return true, nil
}

// acceptTool accepts the current definition of a tool, or of all tools, of one of the user's
// servers, since the user allows models to call it. On a terminal it shows changes and asks first.
func acceptTool(ctx context.Context, f *factory.Factory, store *state.State, server, tool string, all bool) (agreed bool, err error) {
	log := store.DefinitionLog("", server)
	found, err := findChanges(ctx, log, server)
	if err != nil {
		return false, err
	}
	own := ownName(server, tool)
	changes := slices.DeleteFunc(found.changes, func(c client.DefinitionChange) bool { return c.Kind != definitions.Tool || !all && c.Name != own })
	if len(changes) == 0 {
		return true, nil
	}
	if !f.JSON {
		showChanges(f, server, changes)
		if term.Terminal(f.Stdin) != nil {
			if agreed, err := consent.Ask(ctx, f, term.NewLines(f.Stdin), "Let a model call it without an approval, as it is now?"); err != nil || !agreed {
				return false, err
			}
		}
	}
	return true, found.accept(ctx, changes...)
}

// ownName returns the server's own name for a tool, which the rename rules of its entry may change.
func ownName(server, tool string) string {
	o, err := new(factory.Places).ConfigOptions()
	if err != nil {
		return tool
	}
	if s := config.Load(o).Server(server); s != nil {
		for own, local := range s.Tools.Rename {
			if local == tool {
				return own
			}
		}
	}
	return tool
}
