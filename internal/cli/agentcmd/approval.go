package agentcmd

import (
	"fmt"
	"strings"

	"github.com/dowel-mcp/dowel/internal/cli/approval"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
)

// approvals are the tools that the user has allowed for good, in dowel's state and in the user's
// own configuration. Approvals in a project's file are ignored, and a project's server does not
// inherit the approvals of a user's server with the same name.
type approvals struct {
	state   *state.State
	set     *config.Set
	servers *serverSet
	// splitToolName splits a wire name into the server and the tool. ok is false if it cannot.
	splitToolName func(wire string) (server, tool string, ok bool)
}

// isAllowed reports whether the tool with a wire name is allowed for good.
func (a *approvals) isAllowed(name string) bool {
	server, tool, ok := a.splitToolName(name)
	if !ok || !a.servers.isUserServer(server) {
		return false
	}
	if approval.Contains(a.state.AlwaysAllow(server), tool) {
		return true
	}
	s := a.set.Server(server)
	return s != nil && s.Scope == config.User && approval.Contains(s.AlwaysAllow, tool)
}

// allowAlways stores a permanent approval of the tool with a wire name.
func (a *approvals) allowAlways(name string) error {
	server, tool, err := a.resolvePermanent(name)
	if err != nil {
		return err
	}
	return a.state.Allow(server, tool)
}

// resolvePermanent returns the server and tool to store for a permanent approval, or an error if
// the tool cannot be allowed for good.
func (a *approvals) resolvePermanent(name string) (server, tool string, err error) {
	server, tool, ok := a.splitToolName(name)
	if ok {
		name = server + "." + tool
	}
	var reason string
	switch from := a.servers.lookupSource(server); {
	case !ok || from == "":
		reason = "its server is unknown"
	case from == string(config.Project):
		reason = "its server came with a project, and only tools of your own servers can be"
	case !a.servers.isUserServer(server):
		reason = "its server was given on the command line, and only tools of configured servers can be"
	case tool == approval.EveryTool:
		reason = "the name means all tools of the server"
	case tool == "":
		reason = "its name is empty"
	default:
		return server, tool, nil
	}
	return "", "", fmt.Errorf("%s cannot be allowed for good: %s", name, reason)
}

// trustArgument returns the argument of dowel trust --tool that allows exactly the tool with a wire
// name. It returns "" if no argument does, or if the argument would need quotes in a shell.
func trustArgument(f *factory.Factory, a *approvals, name string) string {
	server, tool, err := a.resolvePermanent(name)
	word := server + "." + tool
	if err != nil || strings.HasPrefix(word, "-") || strings.ContainsFunc(word, isUnsafeInShell) {
		return ""
	}
	if s, t, err := approval.ParseTool(f, a.state, word, false); err != nil || s != server || t != tool {
		return ""
	}
	return word
}

// isUnsafeInShell reports whether a shell may interpret the character, or a reader may confuse it
// with another one.
func isUnsafeInShell(r rune) bool {
	return r >= 0x80 || !strings.ContainsRune("-_./:@+,", r) && !('0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z')
}
