package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/near"
	"github.com/dowel-mcp/dowel/mcp"
)

// list reads the tools, where there may be others than before, and says which have come and gone.
func (r *run) list() error {
	select {
	case <-r.tools.Changed():
	default:
		if r.listed != nil {
			return nil
		}
	}
	tools, err := r.tools.List(r.ctx)
	if err != nil {
		return fmt.Errorf("the tools could not be listed: %w", err)
	}
	// An order of their own: what providers have read stays the same, whichever server was ready first.
	slices.SortStableFunc(tools, func(a, b mcp.Tool) int { return cmp.Compare(a.Name, b.Name) })
	tools = slices.CompactFunc(tools, func(a, b mcp.Tool) bool { return a.Name == b.Name })
	first, change := r.listed == nil, changes(r.listed, tools)
	r.listed = append([]mcp.Tool{}, tools...) // not nil
	if first || len(change.Added)+len(change.Removed) == 0 {
		return nil
	}
	r.tell(change)
	r.say(mcp.RoleUser, mcp.Text(change.String()))
	return nil
}

func changes(before, after []mcp.Tool) (c ToolsChanged) {
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

// String says in words, which the model is told, what has come and gone.
func (c ToolsChanged) String() string {
	var parts []string
	if len(c.Added) > 0 {
		parts = append(parts, "These tools have become available: "+strings.Join(c.Added, ", ")+".")
	}
	if len(c.Removed) > 0 {
		parts = append(parts, "These tools are not available any more: "+strings.Join(c.Removed, ", ")+".")
	}
	return strings.Join(parts, " ")
}

// find returns the tool that a call means: models write - for _, and leave out what stands before a name.
func (r *run) find(name string) (tool *mcp.Tool, mended bool) {
	i, found := slices.BinarySearchFunc(r.listed, name, func(t mcp.Tool, name string) int { return cmp.Compare(t.Name, name) })
	if found {
		return &r.listed[i], false
	}
	if i := near.Slip(name, len(r.listed), func(i int) string { return r.listed[i].Name }); i >= 0 {
		return &r.listed[i], true
	}
	return nil, false
}
