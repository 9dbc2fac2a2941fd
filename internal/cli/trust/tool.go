package trust

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/approval"
	"github.com/dowel-mcp/dowel/internal/cli/editing"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/term"
)

// selectApprovals returns the tools that a model may call without asking. With names, it only
// returns tools of these servers.
func selectApprovals(store *state.State, names []string) (all []state.Approval) {
	for _, p := range store.Approvals() {
		if len(names) == 0 || slices.Contains(names, p.Server) {
			all = append(all, p)
		}
	}
	return all
}

// showApprovals shows the tools of each server that a model may call without asking.
func showApprovals(f *factory.Factory, all []state.Approval) {
	for _, p := range all {
		if p.Annotations {
			fmt.Fprintf(f.Stdout, "%s: a model calls the tools that it calls read-only without an approval\n", f.Stdout.Bold(term.Line(p.Server)))
		}
		if len(p.Tools) == 0 {
			continue
		}
		tools := strings.Join(p.Tools, ", ")
		if slices.Contains(p.Tools, approval.EveryTool) {
			tools = "all of its tools"
		}
		fmt.Fprintf(f.Stdout, "%s: a model calls %s without an approval\n", f.Stdout.Bold(term.Line(p.Server)), term.Line(tools))
	}
}

// trustTools allows a model to call tools without an approval. With revoke, it ends that.
func trustTools(ctx context.Context, f *factory.Factory, names []string, revoke bool) error {
	if len(names) == 0 {
		return exit.Usagef("name the tools: dowel trust --tool SERVER.TOOL")
	}
	store, err := f.OpenState()
	if err != nil {
		return err
	}
	var done []GrantLine
	for _, name := range names {
		server, tool, err := approval.ParseTool(f, store, name, revoke)
		if err != nil {
			return err
		}
		done = append(done, GrantLine{Name: server, Tools: []string{tool}})
	}
	for i, g := range done {
		if !revoke {
			agreed, err := acceptTool(ctx, f, store, g.Name, g.Tools[0], g.Tools[0] == approval.EveryTool)
			if err != nil {
				return err
			}
			if !agreed {
				done = done[:i]
				break
			}
		}
		if err := changeApproval(store, g.Name, g.Tools[0], revoke); err != nil {
			return err
		}
	}
	if !revoke {
		editing.ReloadDaemon(ctx, f)
	}
	if f.JSON {
		return f.WriteValue(done)
	}
	for _, g := range done {
		state := "no longer needs an approval"
		if revoke {
			state = "needs an approval again"
		}
		fmt.Fprintf(f.Stdout, "%s.%s %s\n", term.Line(g.Name), term.Line(g.Tools[0]), state)
	}
	return nil
}

// changeApproval stores or removes the approval of one tool, or of every tool of a server.
func changeApproval(store *state.State, server, tool string, revoke bool) error {
	switch {
	case !revoke:
		return store.Allow(server, tool)
	case tool == approval.EveryTool:
		return store.Disallow(server, store.AlwaysAllow(server)...)
	}
	return store.Disallow(server, tool)
}
