package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/mcp"
)

// announceChanges tells the model which tools have come and gone, and which resources have changed,
// since it was told last.
func (r *run) announceChanges() error {
	if err := r.refreshTools(r.ctx); err != nil {
		return err
	}
	r.announceResources()
	if !r.unannounced {
		return nil
	}
	first, change := r.announced == nil, diffTools(r.announced, r.listed)
	r.announced, r.unannounced = r.listed, false
	if first || len(change.Added)+len(change.Removed) == 0 {
		return nil
	}
	r.emit(change)
	r.history.appendContent(mcp.RoleUser, mcp.Text(r.describeChange(change)))
	return nil
}

// refreshTools lists the tools if they may have changed. It must not run while a call runs: the
// server may wait for an answer before it lists anything.
func (a *Agent) refreshTools(ctx context.Context) error {
	var tools []mcp.Tool
	if a.tools != nil {
		select {
		case <-a.tools.Changed():
			a.stale = true
			a.resources.markStale()
			a.skills.markStale()
		default:
		}
		if a.listed != nil && !a.stale {
			return nil
		}
		var err error
		if tools, err = a.tools.List(ctx); err != nil { // stale stays set, so that the next run lists again
			return fmt.Errorf("the tools could not be listed: %w", err)
		}
	}
	// Sorted, so that the request's bytes, which providers cache, do not depend on which server is
	// ready first.
	slices.SortStableFunc(tools, func(x, y mcp.Tool) int { return cmp.Compare(x.Name, y.Name) })
	tools = slices.CompactFunc(tools, func(x, y mcp.Tool) bool { return x.Name == y.Name })
	a.stale, a.unannounced = false, true
	a.setTools(tools, a.announced)
	return nil
}

func diffTools(before, after []mcp.Tool) (c ToolsChanged) {
	names := func(tools []mcp.Tool) map[string]bool {
		all := map[string]bool{}
		for _, t := range tools {
			all[t.Name] = true
		}
		return all
	}
	was, is := names(before), names(after)
	for _, t := range after {
		if !was[t.Name] {
			c.Added = append(c.Added, t.Name)
		}
	}
	for _, t := range before {
		if !is[t.Name] {
			c.Removed = append(c.Removed, t.Name)
		}
	}
	return c
}

// describeChange returns the change in words.
func (c ToolsChanged) describeChange() string {
	var parts []string
	if len(c.Added) > 0 {
		parts = append(parts, "These tools have become available: "+strings.Join(c.Added, ", ")+".")
	}
	if len(c.Removed) > 0 {
		parts = append(parts, "These tools are not available any more: "+strings.Join(c.Removed, ", ")+".")
	}
	return strings.Join(parts, " ")
}

// describeChange describes the change for the model, without names if it searches for tools.
func (a *Agent) describeChange(c ToolsChanged) string {
	if !a.offer.deferred {
		return c.describeChange()
	}
	var parts []string
	if n := len(c.Added); n > 0 {
		parts = append(parts, fmt.Sprintf("Tools have become available, %d%s: %s finds them.", n, a.countPerServer(c.Added), a.offer.searchName))
	}
	if n := len(c.Removed); n > 0 {
		parts = append(parts, fmt.Sprintf("Tools are not available any more, %d%s.", n, a.countPerServer(c.Removed)))
	}
	return strings.Join(parts, " ")
}

// indexOfTool returns the index of a tool in a sorted list; -1 if it is missing.
func indexOfTool(tools []mcp.Tool, name string) int {
	i, found := slices.BinarySearchFunc(tools, name, func(t mcp.Tool, name string) int { return cmp.Compare(t.Name, name) })
	if !found {
		return -1
	}
	return i
}

// toolNamed returns the tool of a name; nil if it is unknown.
func (a *Agent) toolNamed(name string) *mcp.Tool {
	i := indexOfTool(a.listed, name)
	if i < 0 {
		return nil
	}
	return &a.listed[i]
}

// resolveName returns the tool of a name that may be slightly wrong: models write - for _, and
// leave out prefixes. corrected reports that the tool has another name.
func (a *Agent) resolveName(name string) (tool *mcp.Tool, mended bool) {
	if tool = a.toolNamed(name); tool != nil {
		return tool, false
	}
	if i := near.FindVariant(name, len(a.listed), func(i int) string { return a.listed[i].Name }); i >= 0 {
		return &a.listed[i], true
	}
	return nil, false
}

// maxSuggested is how many tools are suggested for an unknown one.
const maxSuggested = 3

// unknownToolReason tells the model that a tool is unknown, and suggests similar ones.
func (a *Agent) unknownToolReason(name string) string {
	text := "there is no tool " + oneLine(name)
	var near []string
	for _, t := range a.findTools(name, maxSuggested) {
		near = append(near, t.Name)
	}
	if near != nil {
		text += "; perhaps one of these was meant: " + strings.Join(near, ", ")
	}
	return text
}
