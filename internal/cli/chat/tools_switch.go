package chat

import (
	"context"
	"slices"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/agentcmd"
	"github.com/dowel-mcp/dowel/internal/cli/display"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// Words after /tools that switch tools.
const (
	onWord  = "on"
	offWord = "off"
)

// handleTools switches tools on or off, or lists them.
func (c *conversation) handleTools(ctx context.Context, words string) error {
	verb, name, _ := strings.Cut(words, " ")
	if verb != onWord && verb != offWord {
		return c.listTools(ctx, words)
	}
	if name = strings.TrimSpace(name); name == "" {
		return exit.Usagef("/tools %s needs a name: SERVER.TOOL, or SERVER for all its tools", verb)
	}
	rt, err := c.awaitRuntime(ctx)
	if err != nil {
		return err
	}
	names, err := c.listSwitchable(ctx, rt)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return exit.WithHelp(exit.Usagef("no tool or server is called %s%s", name, suggest.Hint(name, names)), "/tools")
	}
	if server := rt.SwitchTools(name, verb == onWord); server != "" {
		return exit.Usagef("all tools of %[1]s are switched off: /tools on %[1]s gives them back, then switch off single ones", server)
	}
	if verb == onWord {
		c.view.Note("the model has %s from the next message on", term.RevealLine(name))
	} else {
		c.view.Note("the model does not have %s from the next message on; /tools on %s gives it back", term.RevealLine(name), term.RevealLine(name))
	}
	return nil
}

// listSwitchable returns the names that /tools on and /tools off take.
func (c *conversation) listSwitchable(ctx context.Context, rt *agentcmd.Runtime) (names []string, err error) {
	tools, err := toolname.Recorder{Toolbox: rt.Toolbox}.List(ctx)
	for _, t := range tools {
		name := toolname.Qualified(t.Name)
		if origin, ok := toolname.Split(t.Name); ok && !slices.Contains(names, origin.Server) { // its name may have dots
			names = append(names, origin.Server)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, err
}

// describeCost returns how many tokens a tool takes, or why it takes none. It returns "" before the
// model has had tools.
func describeCost(rt *agentcmd.Runtime, costs map[string]int, t *mcp.Tool) string {
	switch n, known := costs[t.Name]; {
	case !rt.HasTool(t.Name):
		return "off"
	case known:
		return display.Thousands(n) + " tokens"
	}
	return ""
}

// measureTools returns the tokens of each tool by its wire name.
func measureTools(rt *agentcmd.Runtime) map[string]int {
	costs := map[string]int{}
	for _, t := range rt.Agent.Tokens().PerTool {
		costs[t.Name] = t.Tokens
	}
	return costs
}
