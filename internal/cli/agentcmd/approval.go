package agentcmd

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/approval"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// approvals are the tools that the user has allowed for good: in dowel's state, and in the user's own configuration. What a
// project's file says of that counts for nothing, and neither does a server that came with a project go by the name of one of the
// user's.
type approvals struct {
	state   *state.State
	set     *config.Set
	servers *serverSet
	// splitToolName returns the server and the tool that a name on the wire is of; false where that is not known.
	splitToolName func(wire string) (server, tool string, ok bool)
}

// isAllowed reports whether a tool runs without being asked about, by its name on the wire.
func (p *approvals) isAllowed(name string) bool {
	server, tool, ok := p.splitToolName(name)
	if !ok || !p.servers.isUserServer(server) {
		return false
	}
	if approval.Contains(p.state.AlwaysAllow(server), tool) {
		return true
	}
	s := p.set.Server(server)
	return s != nil && s.Scope == config.User && approval.Contains(s.AlwaysAllow, tool)
}

// allowAlways allows a tool for good.
func (p *approvals) allowAlways(name string) error {
	server, tool, err := p.resolvePermanent(name)
	if err != nil {
		return err
	}
	return p.state.Allow(server, tool)
}

// resolvePermanent is what is kept of a tool that is allowed for good; an error where that is not possible.
func (p *approvals) resolvePermanent(name string) (server, tool string, err error) {
	server, tool, ok := p.splitToolName(name)
	if ok {
		name = server + "." + tool
	}
	var why string
	switch from := p.servers.lookupSource(server); {
	case !ok || from == "":
		why = "it is not known of which server it is"
	case from == string(config.Project):
		why = "its server came with a project, and only of your own servers that is kept"
	case !p.servers.isUserServer(server):
		why = "its server stands on the command line, and only of those of your configuration that is kept"
	case tool == approval.EveryTool:
		why = "that name stands for all tools of its server"
	case tool == "":
		why = "it has no name"
	default:
		return server, tool, nil
	}
	return "", "", fmt.Errorf("%s cannot be allowed for good: %s", name, why)
}

// trustArgument is what dowel trust --tool takes for a tool; empty where it would not allow that tool, or another one as well, or where
// a shell would make something else of it.
func trustArgument(f *factory.Factory, p *approvals, name string) string {
	server, tool, err := p.resolvePermanent(name)
	word := server + "." + tool
	if err != nil || strings.HasPrefix(word, "-") || strings.ContainsFunc(word, isUnsafeInShell) {
		return ""
	}
	if s, t, err := approval.ParseTool(f, p.state, word, false); err != nil || s != server || t != tool {
		return ""
	}
	return word
}

// isUnsafeInShell: a shell may take the character for something else, or people for another one.
func isUnsafeInShell(r rune) bool {
	return r >= 0x80 || !strings.ContainsRune("-_./:@+,", r) && !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
}
