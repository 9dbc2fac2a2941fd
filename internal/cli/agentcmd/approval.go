package agentcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/internal/cli/approval"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
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
	// trustAll believes the annotations of all servers.
	trustAll bool
	allowed  []string // see [Flags.Allow]

	mu      sync.Mutex
	changes map[string]*control.Changed // by wire name, as at the last decision; nil if accepted
}

// findChange returns how a tool differs from its accepted definition, or nil. It asks the hub once
// for each decision, which begins with effectOf.
func (a *approvals) findChange(name, server, tool string) *control.Changed {
	a.mu.Lock()
	change, known := a.changes[name]
	a.mu.Unlock()
	if known {
		return change
	}
	change = a.servers.findChange(server, tool)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changes == nil {
		a.changes = map[string]*control.Changed{}
	}
	a.changes[name] = change
	return change
}

// forgetChange makes the next decision ask the hub.
func (a *approvals) forgetChange(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.changes, name)
}

// isAllowed reports whether the tool with a wire name is allowed for good. An approval counts for
// the accepted definition of the tool.
func (a *approvals) isAllowed(name string) bool {
	server, tool, ok := a.splitToolName(name)
	if !ok {
		return false
	}
	approved := a.isAllowedNow(server, tool) || a.servers.isUserServer(server) && a.isApproved(server, tool)
	return approved && a.findChange(name, server, tool) == nil
}

// isAllowedNow reports whether the command line allows a tool.
func (a *approvals) isAllowedNow(server, tool string) bool {
	return slices.Contains(a.allowed, server+"."+tool) || slices.Contains(a.allowed, server+"."+approval.EveryTool)
}

// toolArgument returns the argument of --allow for the tool with a wire name.
func (a *approvals) toolArgument(name string) string {
	server, tool, ok := a.splitToolName(name)
	word := server + "." + tool
	if !ok || tool == approval.EveryTool || strings.HasPrefix(word, "-") || strings.ContainsFunc(word, isUnsafeInShell) {
		return ""
	}
	return word
}

// WarnUnknownAllowances warns of each entry of [Flags.Allow] that no tool has as its name. The
// server may get ready later.
func (r *Runtime) WarnUnknownAllowances(ctx context.Context, f *factory.Factory, opts *Flags) {
	if len(opts.Allow) == 0 {
		return
	}
	tools, err := r.Toolbox.List(ctx)
	if err != nil {
		return
	}
	var known []string
	for _, t := range tools {
		if server, tool, ok := r.splitToolName(t.Name); ok {
			known = append(known, server+"."+tool, server+"."+approval.EveryTool)
		}
	}
	for _, word := range opts.Allow {
		if !slices.Contains(known, word) {
			f.Warn("--allow %s: no server has this tool now%s", term.Line(word), suggest.Hint(word, known))
		}
	}
}

// effectOf returns the effect of a tool. A server cannot make a tool read-only by changing its
// annotations: the user must accept the change first. A decision on a call begins with effectOf.
func (a *approvals) effectOf(t *mcp.Tool) agent.Effect {
	a.forgetChange(t.Name)
	effect := agent.EffectOf(t)
	if effect != agent.ReadOnly {
		return effect
	}
	server, tool, ok := a.splitToolName(t.Name)
	if !ok {
		return effect
	}
	if change := a.findChange(t.Name, server, tool); change != nil && definitions.MayChangeHints(change.DefinitionChange) {
		return agent.Destructive
	}
	return effect
}

// trustsAnnotations reports whether the user trusts a server to say which of its tools are
// read-only. Built-in servers are a part of dowel.
func (a *approvals) trustsAnnotations(server string) bool {
	if a.trustAll {
		return true
	}
	switch a.servers.lookupSource(server) {
	case connect.BuiltInSource:
		return true
	case string(config.User):
		s := a.set.Server(server)
		return a.state.TrustsAnnotations(server) || s != nil && s.Scope == config.User && s.TrustAnnotations
	}
	return false
}

// trustServer stores that the user trusts a server to say which of its tools are read-only.
func (a *approvals) trustServer(server string) error {
	if !a.servers.isUserServer(server) {
		return fmt.Errorf("%s is not a server of your own configuration", server)
	}
	return a.state.SetTrustAnnotations(server, true)
}

// isApproved reports whether the user has allowed a tool for good, whatever its definition was
// then.
func (a *approvals) isApproved(server, tool string) bool {
	if approval.Contains(a.state.AlwaysAllow(server), tool) {
		return true
	}
	s := a.set.Server(server)
	return s != nil && s.Scope == config.User && approval.Contains(s.AlwaysAllow, tool)
}

// describeChange returns how the tool with a wire name differs from its accepted definition, and
// whether the user had allowed it for good. The change is nil if the tool is accepted.
func (a *approvals) describeChange(name string) (change *control.Changed, wasAllowed bool) {
	server, tool, ok := a.splitToolName(name)
	if !ok {
		return nil, false
	}
	change = a.findChange(name, server, tool)
	return change, change != nil && a.servers.isUserServer(server) && a.isApproved(server, tool)
}

// allowAlways stores a permanent approval of the tool with a wire name, as the user was asked about
// it.
func (a *approvals) allowAlways(name string) error {
	server, tool, err := a.resolvePermanent(name)
	if err != nil {
		return err
	}
	a.mu.Lock()
	change := a.changes[name]
	a.mu.Unlock()
	if change != nil {
		if err := a.servers.acceptChange(server, change.DefinitionChange); err != nil {
			return err
		}
		a.forgetChange(name)
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

// DescribeToolChange returns the differences between two definitions of a tool, one a line.
// Metadata does not count.
func DescribeToolChange(old, now *mcp.Tool) []string {
	a, err := json.Marshal(old)
	b, otherErr := json.Marshal(now)
	if err != nil || otherErr != nil {
		return []string{"its definition cannot be shown"}
	}
	return definitions.Compare(a, b)
}
