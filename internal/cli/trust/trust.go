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

// NewCommand returns the command dowel trust.
func NewCommand(f *factory.Factory) *cobra.Command {
	var where factory.Places
	var opts Options
	cmd := &cobra.Command{
		Use:   "trust [NAME…]",
		Short: "Allow servers of a project to run",
		Long: `Show the servers in the configuration files of the current project and the command or URL of each, and ask whether it may
run. Servers run with your rights, and a cloned project may contain a server that you do not want.

You allow one version: the transport, the command and its arguments, the folder, the URL, the variables and header fields with
their values, and the content of the env file and of the programs and scripts in the project that the entry names. If one of
them changes, dowel names the change and asks again. Files that a script imports do not count. With --folder, no file in the
project's folder counts, so that a rebuild does not ask again. --list shows the allowed servers of all projects. --revoke stops
servers of the current project and no longer allows them.

With --tool, allow tools that a model may then call without asking (dowel run, dowel chat): SERVER.TOOL, or 'SERVER.*' for all
tools of a server. This works for your own servers, not for servers of a project. It counts for the definition that the tool has
now: if its description, schema or hints change, the next call asks again.

With --annotations, trust a server of yours to say which of its tools are read-only: a model then calls these without asking.
Built-in servers are believed.

With --instructions, show the files AGENTS.md of the current project and ask whether models may get them (dowel run, dowel chat).

With --definitions, show the tools, prompts, resource templates and instructions of servers that have changed, and ask whether
you accept them as they are now. A server with "definitions": "hold" offers changed ones again when you have accepted them.`,
		Example: `  dowel trust --folder
  dowel trust --tool files.write
  dowel trust --annotations github
  dowel trust --definitions`,
		RunE: func(cmd *cobra.Command, names []string) error {
			f.Parsed = true
			return runTrust(cmd.Context(), f, where, names, opts)
		},
	}
	where.AddFlags(cmd)
	cmd.Flags().BoolVar(&opts.yes, "yes", false, "allow the named servers without asking")
	cmd.Flags().BoolVar(&opts.folder, "folder", false, "allow the servers whatever the code in the project's folder becomes")
	cmd.Flags().BoolVar(&opts.list, "list", false, "show the allowed servers and tools, and the servers whose annotations you believe")
	cmd.Flags().BoolVar(&opts.revoke, "revoke", false, "no longer allow the named servers or tools")
	cmd.Flags().BoolVar(&opts.tool, "tool", false, "let a model call the named tools without an approval")
	cmd.Flags().BoolVar(&opts.annotations, "annotations", false, "trust the named servers to say which of their tools are read-only")
	cmd.Flags().BoolVar(&opts.definitions, "definitions", false, "accept the changed definitions of the named servers, or of all")
	cmd.Flags().BoolVar(&opts.instructions, "instructions", false, "let models get the AGENTS.md files of the current project")
	cmd.MarkFlagsMutuallyExclusive("yes", "list", "revoke")
	cmd.MarkFlagsMutuallyExclusive("yes", "tool", "annotations")
	cmd.MarkFlagsMutuallyExclusive("folder", "definitions")
	for _, other := range []string{"list", "tool", "annotations", "definitions"} {
		cmd.MarkFlagsMutuallyExclusive("instructions", other)
	}
	for _, other := range []string{"list", "revoke", "tool", "annotations"} {
		cmd.MarkFlagsMutuallyExclusive("definitions", other)
		cmd.MarkFlagsMutuallyExclusive("folder", other)
	}
	return cmd
}

// Options are the flags of dowel trust.
type Options struct{ yes, folder, list, revoke, tool, annotations, definitions, instructions bool }

func runTrust(ctx context.Context, f *factory.Factory, where factory.Places, names []string, opts Options) error {
	if opts.list {
		return listTrusted(f, names)
	}
	if err := factory.RunningDaemon().Authorize(ctx); err != nil {
		return err
	}
	switch {
	case opts.tool:
		return trustTools(ctx, f, names, opts.revoke)
	case opts.annotations:
		return trustAnnotations(f, where, names, opts.revoke)
	case opts.instructions:
		return trustInstructions(ctx, f, where, names, opts)
	case opts.definitions:
		return acceptDefinitions(ctx, f, where, names, opts)
	case (opts.yes || opts.revoke) && len(names) == 0:
		return exit.Usagef("--yes and --revoke need the names of servers: dowel trust NAME --yes")
	case opts.revoke:
		return revokeTrust(ctx, f, where, names)
	}
	source, err := f.ReadConfig(where)
	if err != nil {
		return err
	}
	waiting := source.Untrusted()
	if opts.folder { // also for servers that are allowed in one version
		waiting = source.Project()
	}
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(u configured.Untrusted) bool { return u.Name == name }) {
			return exit.Usagef("%s does not wait for your trust: %s", name, waitingHint(waiting))
		}
	}
	if f.JSON && !opts.yes {
		return f.WriteValue(describeUntrusted(waiting))
	}
	if err := askAll(ctx, f, source, waiting, names, opts); err != nil {
		return err
	}
	editing.ReloadDaemon(ctx, f)
	if len(waiting) == 0 && !f.JSON {
		fmt.Fprintln(f.Stdout, "No server waits for your trust.")
	}
	return nil
}

// askAll asks for the trust in each of the waiting servers. With names, it asks only for these.
func askAll(ctx context.Context, f *factory.Factory, source *configured.Source, waiting []configured.Untrusted, names []string, opts Options) error {
	in := term.NewLines(f.Stdin)
	for _, u := range waiting {
		if len(names) > 0 && !slices.Contains(names, u.Name) {
			continue
		}
		if err := consent.AskTrust(ctx, f, source, u, in, consent.Answer{Yes: opts.yes, Folder: opts.folder}); err != nil {
			return err
		}
	}
	return nil
}

// waitingHint returns a clause that names the waiting servers.
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

// waitingServer is the JSON output for a server that waits for trust.
type waitingServer struct {
	Name  string   `json:"name"`
	File  string   `json:"file"`
	Facts []string `json:"facts"`
	// Changes are the differences since the user allowed the server.
	Changes []string `json:"changes,omitempty"`
}

func describeUntrusted(waiting []configured.Untrusted) []waitingServer {
	all := []waitingServer{}
	for _, u := range waiting {
		all = append(all, waitingServer{u.Name, u.Server.Path, u.Facts.Lines(), u.Changes})
	}
	return all
}

// GrantLine is the JSON output for a grant: a server of a file, or tools of a server.
type GrantLine struct {
	Name  string   `json:"name"`
	File  string   `json:"file,omitzero"`
	Facts []string `json:"facts,omitzero"`
	// Folder means that files of the project's folder may change.
	Folder bool     `json:"folder,omitzero"`
	Tools  []string `json:"tools,omitzero"`
	// Annotations means that the server is trusted to say which of its tools are read-only.
	Annotations bool `json:"annotations,omitzero"`
}

func newGrantLine(g state.Grant) GrantLine {
	return GrantLine{Name: g.Name, File: g.File, Facts: g.Lines(), Folder: g.Folder}
}

// listTrusted shows the servers and tools that the user has allowed in all projects. With names, it
// only shows these servers.
func listTrusted(f *factory.Factory, names []string) error {
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	all := []GrantLine{}
	for _, g := range store.Grants() {
		if len(names) == 0 || slices.Contains(names, g.Name) {
			all = append(all, newGrantLine(g))
		}
	}
	approved := selectApprovals(store, names)
	if f.JSON {
		for _, t := range approved {
			all = append(all, GrantLine{Name: t.Server, Tools: t.Tools, Annotations: t.Annotations})
		}
		return f.WriteValue(all)
	}
	for _, g := range all {
		fmt.Fprintf(f.Stdout, "%s, from %s\n", f.Stdout.Bold(term.Line(g.Name)), term.Line(g.File))
		for _, fact := range g.Facts {
			fmt.Fprintln(f.Stdout, "  "+term.Line(fact))
		}
		if g.Folder {
			fmt.Fprintln(f.Stdout, "  whatever the code in its folder becomes")
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(f.Stdout, "You have not allowed any server of a project.")
	}
	showApprovals(f, approved)
	return nil
}

// revokeTrust ends the trust in servers of the current project.
func revokeTrust(ctx context.Context, f *factory.Factory, where factory.Places, names []string) error {
	o, err := where.ConfigOptions()
	if err != nil {
		return err
	}
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	revoked := []GrantLine{}
	for _, name := range names {
		grants, err := findGrants(store.Grants(), name, config.Load(o).Files)
		if err != nil {
			return err
		}
		revoked = append(revoked, grants...)
	}
	for _, g := range revoked {
		if err := store.Distrust(g.File, g.Name); err != nil {
			return err
		}
	}
	editing.ReloadDaemon(ctx, f)
	if f.JSON {
		return f.WriteValue(revoked)
	}
	for _, g := range revoked {
		fmt.Fprintf(f.Stdout, "%s, from %s, is no longer allowed\n", term.Line(g.Name), term.Line(g.File))
	}
	return nil
}

// findGrants returns the grants for a server name in files. If it finds none, its error names
// another file in which a server of that name is allowed.
func findGrants(grants []state.Grant, name string, files []config.File) (found []GrantLine, err error) {
	elsewhere := ""
	for _, g := range grants {
		switch {
		case g.Name != name:
		case slices.ContainsFunc(files, func(file config.File) bool { return file.Path == g.File }):
			found = append(found, newGrantLine(g))
		default:
			elsewhere = fmt.Sprintf("; one is allowed in %s: add --project %s", g.File, filepath.Dir(g.File))
		}
	}
	if found == nil {
		return nil, exit.Usagef("no server called %s is allowed in this project%s", name, elsewhere)
	}
	return found, nil
}
