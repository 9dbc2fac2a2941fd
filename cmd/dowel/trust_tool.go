package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// approvedTools are those that a model may call without an approval; with names, those of these servers.
func approvedTools(store *state.State, names []string) (all []state.Approval) {
	for _, p := range store.Approvals() {
		if len(names) == 0 || slices.Contains(names, p.Server) {
			all = append(all, p)
		}
	}
	return all
}

func (a *app) showApproved(all []state.Approval) {
	for _, p := range all {
		what := strings.Join(p.Tools, ", ")
		if slices.Contains(p.Tools, everyTool) {
			what = "all of its tools"
		}
		fmt.Fprintf(a.stdout, "%s: a model calls %s without an approval\n", a.stdout.bold(line(p.Server)), line(what))
	}
}

// trustTools lets a model call tools without an approval, or no longer so.
func (a *app) trustTools(names []string, revoke bool) error {
	if len(names) == 0 {
		return usagef("name the tools: dowel trust --tool SERVER.TOOL")
	}
	store, err := a.choices()
	if err != nil {
		return err
	}
	var done []grantLine
	for _, name := range names {
		server, tool, err := a.toolNamed(store, name, revoke)
		if err != nil {
			return err
		}
		done = append(done, grantLine{Name: server, Tools: []string{tool}})
	}
	for _, g := range done {
		if err := toldOf(store, g.Name, g.Tools[0], revoke); err != nil {
			return err
		}
	}
	if a.json {
		return a.value(done)
	}
	for _, g := range done {
		what := "needs no approval any more"
		if revoke {
			what = "needs an approval again"
		}
		fmt.Fprintf(a.stdout, "%s.%s %s\n", line(g.Name), line(g.Tools[0]), what)
	}
	return nil
}

func toldOf(store *state.State, server, tool string, revoke bool) error {
	switch {
	case !revoke:
		return store.Allow(server, tool)
	case tool == everyTool:
		return store.Disallow(server, store.AlwaysAllow(server)...)
	}
	return store.Disallow(server, tool)
}

// toolNamed reads SERVER.TOOL. The server has to be one of the user's; where something is taken back, one of which something is kept.
func (a *app) toolNamed(store *state.State, name string, revoke bool) (server, tool string, err error) {
	var known []string
	for _, p := range store.Approvals() {
		known = append(known, p.Server)
	}
	foreign := map[string]bool{}
	if !revoke {
		d := readDirectory()
		known = d.known()
		for _, server := range known {
			foreign[server] = d.source(server) == string(config.Project)
		}
	}
	server, tool, err = splitName(name, known)
	switch {
	case err != nil && revoke:
		return "", "", usagef("%s needs an approval anyhow; see dowel trust --list", name)
	case err != nil:
		return "", "", err
	case tool == "":
		return "", "", usagef("name the tool, too: %s.TOOL, or '%s.*' for all", server, server)
	case foreign[server]:
		return "", "", usagef("%s came with a project, and only of your own servers it is kept which tools need no approval", server)
	case revoke && tool != everyTool && slices.Contains(store.AlwaysAllow(server), everyTool):
		return "", "", usagef("%s.%s needs no approval because none of %[1]s does: take that back with dowel trust --tool --revoke '%[1]s.*', and then allow those that you mean", server, tool)
	case revoke && tool != everyTool && !slices.Contains(store.AlwaysAllow(server), tool):
		return "", "", usagef("%s.%s needs an approval anyhow%s; see dowel trust --list", server, tool, suggestion(tool, store.AlwaysAllow(server)))
	}
	return server, tool, nil
}

// source says where a server's definition is from.
func (d *directory) source(name string) string {
	if def, ok := d.definitions[name]; ok {
		return def.Source
	}
	if from, ok := d.sources[name]; ok {
		return from
	}
	return builtInSource
}
