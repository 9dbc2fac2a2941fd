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

// EveryTool is the name that allows all tools of a server. A tool that is itself called "*" cannot
// be allowed for good.
const EveryTool = "*"

// Contains reports whether a list of allowed tools allows tool, by name or with [EveryTool].
func Contains(tools []string, tool string) bool {
	return slices.Contains(tools, tool) || slices.Contains(tools, EveryTool)
}

// ParseTool splits SERVER.TOOL into the server and the tool, or [EveryTool]. The server must belong
// to the user's own configuration. To revoke an approval, the approval must exist in store. Errors
// are usage errors.
func ParseTool(f *factory.Factory, store *state.State, name string, revoke bool) (server, tool string, err error) {
	var known []string
	for _, p := range store.Approvals() {
		known = append(known, p.Server)
	}
	foreign := map[string]bool{}
	if !revoke {
		d := connect.ReadDirectory(connect.AnswerTimeout)
		known = d.Known()
		for _, server := range known {
			foreign[server] = d.Source(server) == string(config.Project)
		}
	}
	server, tool, err = connect.SplitName(name, known)
	switch {
	case err != nil && revoke:
		return "", "", exit.Usagef("%s has no approval to revoke; see dowel trust --list", name)
	case err != nil:
		return "", "", err
	case tool == "":
		return "", "", exit.Usagef("the tool is missing: write %s.TOOL, or '%s.*' for all tools", server, server)
	case foreign[server]:
		return "", "", exit.Usagef("%s came with a project: only tools of your own servers can be allowed for good", server)
	case revoke && tool != EveryTool && slices.Contains(store.AlwaysAllow(server), EveryTool):
		return "", "", exit.Usagef("all tools of %[1]s are allowed, so %[1]s.%[2]s cannot be revoked alone: revoke all with dowel trust --tool --revoke '%[1]s.*', then allow single tools", server, tool)
	case revoke && tool != EveryTool && !slices.Contains(store.AlwaysAllow(server), tool):
		return "", "", exit.Usagef("%s.%s has no approval to revoke%s; see dowel trust --list", server, tool, suggest.Hint(tool, store.AlwaysAllow(server)))
	}
	return server, tool, nil
}
