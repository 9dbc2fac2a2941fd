// Package trust is dowel trust: the user allows servers that came with a project, and tools that a
// model may call without an approval.
package trust

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/consent"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/spf13/cobra"
)

func NewCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var opts Options
	cmd := &cobra.Command{
		Use:   "trust [NAME…]",
		Short: "Allow servers that came with a project",
		Long: `Show the servers that the current folder's configuration files bring along, what each of them would run or reach, and ask
whether it may. They run as you, with all that you may do: a project that was cloned is somebody else's.

What you allow is what you have seen: the transport, the command and its arguments, the folder, the names of variables and
header fields, the URL. Where one of them changes you are asked again, and shown what has changed. --list shows what you have
allowed, in all projects, and --revoke takes that back for servers of the current one: they are ended.

With --tool it is about tools that a model may call without an approval (dowel run, dowel chat): SERVER.TOOL, or 'SERVER.*' for
all of a server. That is kept for your own servers, and never for those that came with a project.`,
		Example: `  dowel trust
  dowel trust --list
  dowel trust --tool files.write
  dowel trust --tool --revoke 'files.*'`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return runTrust(cmd.Context(), f, where, names, opts)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "allow the named servers without asking")
	cmd.Flags().BoolVar(&opts.list, "list", false, "show what you have allowed")
	cmd.Flags().BoolVar(&opts.revoke, "revoke", false, "do not allow the named servers or tools any more")
	cmd.Flags().BoolVar(&opts.tool, "tool", false, "let a model call the named tools without an approval")
	cmd.MarkFlagsMutuallyExclusive("yes", "list", "revoke")
	cmd.MarkFlagsMutuallyExclusive("yes", "tool")
	return cmd
}

type Options struct{ yes, list, revoke, tool bool }

func runTrust(ctx context.Context, f *factory.Factory, where factory.Places, names []string, opts Options) error {
	switch {
	case opts.list:
		return listTrusted(f, names)
	case opts.tool:
		return trustTools(f, names, opts.revoke)
	case (opts.yes || opts.revoke) && len(names) == 0:
		return exit.Usagef("--yes and --revoke are for servers that are named: dowel trust NAME --yes")
	case opts.revoke:
		return revokeTrust(ctx, f, where, names)
	}
	source, err := f.ReadConfig(where)
	if err != nil {
		return err
	}
	waiting := source.Untrusted()
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(u configured.Untrusted) bool { return u.Name == name }) {
			return exit.Usagef("%s does not wait for your trust: %s", name, waitingHint(waiting))
		}
	}
	if f.JSON && !opts.yes {
		return f.WriteValue(describeUntrusted(waiting))
	}
	in := term.NewLines(f.Stdin)
	for _, u := range waiting {
		if len(names) > 0 && !slices.Contains(names, u.Name) {
			continue
		}
		if err := consent.AskTrust(ctx, f, source, u, in, opts.yes); err != nil {
			return err
		}
	}
	editing.ReloadDaemon(ctx, f)
	if len(waiting) == 0 && !f.JSON {
		fmt.Fprintln(f.Stdout, "No server waits for your trust.")
	}
	return nil
}

// waitingHint names those that wait.
func waitingHint(waiting []configured.Untrusted) string {
	var names []string
	for _, u := range waiting {
		names = append(names, u.Name)
	}
	switch len(names) {
	case 0:
		return "no server does"
	case 1:
		return names[0] + " does"
	}
	return strings.Join(names, ", ") + " do"
}

// waitingServer is a server that waits, as a program reads it.
type waitingServer struct {
	Name   string   `json:"name"`
	File   string   `json:"file"`
	Facts  []string `json:"facts"`
	Before []string `json:"before,omitempty"`
}

func describeUntrusted(waiting []configured.Untrusted) []waitingServer {
	all := []waitingServer{}
	for _, u := range waiting {
		all = append(all, waitingServer{u.Name, u.Server.Path, u.Facts, u.Before})
	}
	return all
}

// GrantLine is what was allowed, as a program reads it: a server of a file, or tools of a server.
type GrantLine struct {
	Name  string   `json:"name"`
	File  string   `json:"file,omitzero"`
	Facts []string `json:"facts,omitzero"`
	Tools []string `json:"tools,omitzero"`
}

// listTrusted shows what the user has allowed, of all projects; with names, those alone.
func listTrusted(f *factory.Factory, names []string) error {
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	all := []GrantLine{}
	for _, g := range store.Grants() {
		if len(names) == 0 || slices.Contains(names, g.Name) {
			all = append(all, GrantLine{Name: g.Name, File: g.File, Facts: g.Facts})
		}
	}
	approved := selectApprovals(store, names)
	if f.JSON {
		for _, t := range approved {
			all = append(all, GrantLine{Name: t.Server, Tools: t.Tools})
		}
		return f.WriteValue(all)
	}
	for _, g := range all {
		fmt.Fprintf(f.Stdout, "%s, of %s\n", f.Stdout.Bold(term.Line(g.Name)), term.Line(g.File))
		for _, fact := range g.Facts {
			fmt.Fprintln(f.Stdout, "  "+term.Line(fact))
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(f.Stdout, "Nothing of a project is allowed.")
	}
	showApprovals(f, approved)
	return nil
}

// revokeTrust takes back what the user has allowed of the files of a project.
func revokeTrust(ctx context.Context, f *factory.Factory, where factory.Places, names []string) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	gone := []GrantLine{}
	for _, name := range names {
		of, err := findGrants(store.Grants(), name, config.Load(o).Files)
		if err != nil {
			return err
		}
		gone = append(gone, of...)
	}
	for _, g := range gone {
		if err := store.Distrust(g.File, g.Name); err != nil {
			return err
		}
	}
	editing.ReloadDaemon(ctx, f)
	if f.JSON {
		return f.WriteValue(gone)
	}
	for _, g := range gone {
		fmt.Fprintf(f.Stdout, "%s, of %s, is not allowed any more\n", term.Line(g.Name), term.Line(g.File))
	}
	return nil
}

// findGrants returns what was allowed of a name in some files. That there is nothing is an error, which says where there is.
func findGrants(grants []state.Grant, name string, files []config.File) (of []GrantLine, err error) {
	elsewhere := ""
	for _, g := range grants {
		switch {
		case g.Name != name:
		case slices.ContainsFunc(files, func(file config.File) bool { return file.Path == g.File }):
			of = append(of, GrantLine{Name: g.Name, File: g.File, Facts: g.Facts})
		default:
			elsewhere = fmt.Sprintf("; that of %s is: add --project %s", g.File, filepath.Dir(g.File))
		}
	}
	if of == nil {
		return nil, exit.Usagef("no server called %s is allowed in this project%s", name, elsewhere)
	}
	return of, nil
}
