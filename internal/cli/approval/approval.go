// Package approval reads the names of tools that a model may call without an approval: SERVER.TOOL,
// or SERVER.* for all tools of a server.
package approval

import (
	"slices"

	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/suggest"
)

// EveryTool stands for all tools of a server: a tool of that very name cannot be allowed for good.
const EveryTool = "*"

func Contains(tools []string, tool string) bool {
	return slices.Contains(tools, tool) || slices.Contains(tools, EveryTool)
}

// ParseTool reads SERVER.TOOL. The server has to be one of the user's; where something is taken back, one of which something is kept.
func ParseTool(f *factory.Factory, store *state.State, name string, revoke bool) (server, tool string, err error) {
	var known []string
	for _, p := range store.Approvals() {
		known = append(known, p.Server)
	}
	foreign := map[string]bool{}
	if !revoke {
		d := connect.ReadDirectory()
		known = d.Known()
		for _, server := range known {
			foreign[server] = d.Source(server) == string(config.Project)
		}
	}
	server, tool, err = connect.SplitName(name, known)
	switch {
	case err != nil && revoke:
		return "", "", exit.Usagef("%s needs an approval anyhow; see dowel trust --list", name)
	case err != nil:
		return "", "", err
	case tool == "":
		return "", "", exit.Usagef("name the tool, too: %s.TOOL, or '%s.*' for all", server, server)
	case foreign[server]:
		return "", "", exit.Usagef("%s came with a project, and only of your own servers it is kept which tools need no approval", server)
	case revoke && tool != EveryTool && slices.Contains(store.AlwaysAllow(server), EveryTool):
		return "", "", exit.Usagef("%s.%s needs no approval because none of %[1]s does: take that back with dowel trust --tool --revoke '%[1]s.*', and then allow those that you mean", server, tool)
	case revoke && tool != EveryTool && !slices.Contains(store.AlwaysAllow(server), tool):
		return "", "", exit.Usagef("%s.%s needs an approval anyhow%s; see dowel trust --list", server, tool, suggest.Hint(tool, store.AlwaysAllow(server)))
	}
	return server, tool, nil
}
