package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/spf13/cobra"
)

func (a *app) trustCommand() *cobra.Command {
	var where places
	var f trustFlags
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
			a.began = true
			return a.trust(cmd.Context(), where, names, f)
		},
	}
	where.register(cmd)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "allow the named servers without asking")
	cmd.Flags().BoolVar(&f.list, "list", false, "show what you have allowed")
	cmd.Flags().BoolVar(&f.revoke, "revoke", false, "do not allow the named servers or tools any more")
	cmd.Flags().BoolVar(&f.tool, "tool", false, "let a model call the named tools without an approval")
	cmd.MarkFlagsMutuallyExclusive("yes", "list", "revoke")
	cmd.MarkFlagsMutuallyExclusive("yes", "tool")
	return cmd
}

type trustFlags struct{ yes, list, revoke, tool bool }

func (a *app) trust(ctx context.Context, where places, names []string, f trustFlags) error {
	switch {
	case f.list:
		return a.trusted(names)
	case f.tool:
		return a.trustTools(names, f.revoke)
	case (f.yes || f.revoke) && len(names) == 0:
		return usagef("--yes and --revoke are for servers that are named: dowel trust NAME --yes")
	case f.revoke:
		return a.revoke(ctx, where, names)
	}
	source, err := a.look(where)
	if err != nil {
		return err
	}
	waiting := source.Untrusted()
	for _, name := range names {
		if !slices.ContainsFunc(waiting, func(u configured.Untrusted) bool { return u.Name == name }) {
			return usagef("%s does not wait for your trust: %s", name, whoWaits(waiting))
		}
	}
	if a.json && !f.yes {
		return a.value(untrusted(waiting))
	}
	in := newLines(a.stdin)
	for _, u := range waiting {
		if len(names) > 0 && !slices.Contains(names, u.Name) {
			continue
		}
		if err := a.consider(ctx, source, u, in, f.yes); err != nil {
			return err
		}
	}
	a.tell(ctx)
	if len(waiting) == 0 && !a.json {
		fmt.Fprintln(a.stdout, "No server waits for your trust.")
	}
	return nil
}

// whoWaits names those that wait.
func whoWaits(waiting []configured.Untrusted) string {
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

func untrusted(waiting []configured.Untrusted) []waitingServer {
	all := []waitingServer{}
	for _, u := range waiting {
		all = append(all, waitingServer{u.Name, u.Server.Path, u.Facts, u.Before})
	}
	return all
}

// consider shows a server that waits, and asks whether it may run.
func (a *app) consider(ctx context.Context, source *configured.Source, u configured.Untrusted, in *lines, yes bool) error {
	fmt.Fprintf(a.stdout, "%s, of %s\n", a.stdout.bold(line(u.Name)), u.At)
	facts := u.Facts
	if u.Before != nil {
		facts = config.TrustChange(u.Before, u.Facts)
	}
	for _, fact := range facts {
		fmt.Fprintln(a.stdout, "  "+line(fact))
	}
	switch {
	case yes:
	case terminal(a.stdin) == nil:
		fmt.Fprintln(a.stdout, "  allow it on a terminal, or with: dowel trust "+line(u.Name)+" --yes")
		return nil
	default:
		if agreed, err := a.agrees(ctx, in, "Allow it to run as you?"); err != nil || !agreed {
			return err
		}
	}
	if err := source.Trust(u.Name, u.Facts); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, a.stdout.green("allowed"))
	return nil
}

// agrees asks the user. Only a yes is one; the error is the interruption of the question.
func (a *app) agrees(ctx context.Context, in *lines, question string) (bool, error) {
	fmt.Fprint(a.stdout, question+" [y/N] ")
	answer, err := in.next(ctx)
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(a.stdout)
		return false, nil
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", err
}

// grantLine is what was allowed, as a program reads it: a server of a file, or tools of a server.
type grantLine struct {
	Name  string   `json:"name"`
	File  string   `json:"file,omitzero"`
	Facts []string `json:"facts,omitzero"`
	Tools []string `json:"tools,omitzero"`
}

// trusted shows what the user has allowed, of all projects; with names, those alone.
func (a *app) trusted(names []string) error {
	store, err := a.choices()
	if err != nil {
		return err
	}
	all := []grantLine{}
	for _, g := range store.Grants() {
		if len(names) == 0 || slices.Contains(names, g.Name) {
			all = append(all, grantLine{Name: g.Name, File: g.File, Facts: g.Facts})
		}
	}
	approved := approvedTools(store, names)
	if a.json {
		for _, t := range approved {
			all = append(all, grantLine{Name: t.Server, Tools: t.Tools})
		}
		return a.value(all)
	}
	for _, g := range all {
		fmt.Fprintf(a.stdout, "%s, of %s\n", a.stdout.bold(line(g.Name)), line(g.File))
		for _, fact := range g.Facts {
			fmt.Fprintln(a.stdout, "  "+line(fact))
		}
	}
	if len(all) == 0 {
		fmt.Fprintln(a.stdout, "Nothing of a project is allowed.")
	}
	a.showApproved(approved)
	return nil
}

// revoke takes back what the user has allowed of the files of a project.
func (a *app) revoke(ctx context.Context, where places, names []string) error {
	o, err := where.config()
	if err != nil {
		return err
	}
	store, err := a.choices()
	if err != nil {
		return err
	}
	gone := []grantLine{}
	for _, name := range names {
		of, err := grantsOf(store.Grants(), name, config.Load(o).Files)
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
	a.tell(ctx)
	if a.json {
		return a.value(gone)
	}
	for _, g := range gone {
		fmt.Fprintf(a.stdout, "%s, of %s, is not allowed any more\n", line(g.Name), line(g.File))
	}
	return nil
}

// grantsOf returns what was allowed of a name in some files. That there is nothing is an error, which says where there is.
func grantsOf(grants []state.Grant, name string, files []config.File) (of []grantLine, err error) {
	elsewhere := ""
	for _, g := range grants {
		switch {
		case g.Name != name:
		case slices.ContainsFunc(files, func(f config.File) bool { return f.Path == g.File }):
			of = append(of, grantLine{Name: g.Name, File: g.File, Facts: g.Facts})
		default:
			elsewhere = fmt.Sprintf("; that of %s is: add --project %s", g.File, filepath.Dir(g.File))
		}
	}
	if of == nil {
		return nil, usagef("no server called %s is allowed in this project%s", name, elsewhere)
	}
	return of, nil
}
