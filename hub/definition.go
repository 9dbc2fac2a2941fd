package hub

import (
	"context"
	"net/http"
	"path"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/catalog"
)

// Definition describes one server of a hub. Name and Target are required unless Hold is set.
// A hub keeps the definition, so its maps and slices must not change after [Hub.Apply].
type Definition struct {
	// Name is how users know the server. It is unique in a hub.
	Name string
	// Target is a target of [client.Dial]: a command, a URL, a handler or a dialer.
	Target any
	// Origin shows the target to users, without secrets: the command line or the URL.
	Origin string
	// Source says where the definition is from, such as "project".
	Source string
	// Note is a remark for users that holds while the server runs, such as a problem of its entry.
	Note string
	// Hold keeps the server from starting unless it is zero.
	Hold Hold
	// Fingerprint identifies everything that a running server depends on. [Hub.Apply] restarts
	// the server if the fingerprint changes, and keeps it running if only other fields change.
	Fingerprint string

	// Options connect to the server. The hub replaces Name, Info, Restart and everything that
	// answers the server's questions: see [WithAnswerer]. Start or Connect also limit how long a
	// call waits for a server that is starting; if both are 0, the limit is 60 seconds. A call
	// waits up to 10 seconds longer for the reason of a failure.
	Options client.Options
	// LoginFor returns the HTTP client for the calls of a caller, if callers have logins of their
	// own at the server, and the key of the connection, which all callers with the same key share.
	// With an empty key, Sharing decides. ctx is the context of the call. An error fails the call.
	// LoginFor is called concurrently, before each call. nil means the same login for all.
	LoginFor func(ctx context.Context, caller Caller) (key string, login *http.Client, err error)
	// Policy is how the hub runs the server.
	Policy

	// Linger is how long calls in flight may continue after a restart or a redefinition. It suits
	// targets of which two connections can exist at the same time. 0 ends the calls at once.
	Linger time.Duration

	// Log keeps the definitions that the server gives: [Upstream.ChangedDefinitions] compares them
	// with the accepted ones. nil compares nothing.
	Log client.DefinitionLog
	// HoldChanged withholds tools, prompts, resource templates and instructions with a
	// changed definition until it is accepted, unless HoldChanged is empty. It tells users
	// how to accept it.
	HoldChanged string

	// Mask replaces secrets in a text that users will see. nil replaces nothing.
	Mask func(string) string
}

// Policy is how a hub runs a server: who shares it, when it starts and stops, how long calls may
// take, and which tools it offers. The zero value is one connection for all clients, which starts
// at once and stays, without limits. A change of Idle, Total, Tools or IdleStop takes effect while
// the server runs; a change of WatchPaths restarts it.
type Policy struct {
	// Sharing says which clients use the same connection. Empty means [Shared].
	Sharing Sharing
	// Idle limits how long a call may go without a sign of life from the server, such as
	// progress. Total limits a whole call. Neither runs while the server waits for an answer of
	// the user. 0 means the default of [client.Limits], and a negative value no limit.
	Idle, Total time.Duration
	// Tools selects and renames the tools that the server offers.
	Tools ToolRules

	// Lazy starts the server at the first call, if an earlier run has saved its lists in
	// [Options.Cache]. Otherwise the server starts at once.
	Lazy bool
	// IdleStop stops a server that had no call for this long. The next call starts it again. 0
	// never stops it.
	IdleStop time.Duration
	// WatchPaths are files, folders and patterns. A change below them restarts the server:
	// [Options.Watch] watches them.
	WatchPaths []string
}

// Sharing says which clients share a connection to an upstream.
type Sharing string

const (
	// Shared is one connection for all clients.
	Shared Sharing = "shared"
	// SharePerClient is one connection for each client: its principal, else its session.
	SharePerClient Sharing = "client"
	// SharePerSession is one connection for each session, also for several sessions of the same
	// principal.
	SharePerSession Sharing = "session"
)

// ToolRules change which tools of an upstream are offered, and how. They use the server's own
// names.
type ToolRules struct {
	// Only lists the tools that are offered; nil offers all. Hide lists tools that are not. Both
	// take patterns of [path.Match].
	Only, Hide []string
	// Rename maps names to new names, Describe maps names to new descriptions.
	Rename, Describe map[string]string
}

// changeTool returns how the rules change a tool.
func (r *ToolRules) changeTool(tool string) catalog.ToolChange {
	change := catalog.ToolChange{Hide: !r.allowsTool(tool), Rename: r.Rename[tool]}
	if text, ok := r.Describe[tool]; ok {
		change.Describe = &text
	}
	return change
}

// allowsTool reports whether the rules offer a tool. A pattern that cannot be parsed is a plain
// name.
func (r *ToolRules) allowsTool(tool string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok || err != nil && pattern == tool
	}
	return (r.Only == nil || slices.ContainsFunc(r.Only, matches)) && !slices.ContainsFunc(r.Hide, matches)
}

// Hold says why a server is not started. The zero value does not hold it.
type Hold struct {
	// Status is [Disabled], [NeedsConfiguration] or [NeedsTrust].
	Status Status
	// Reason explains the status to users.
	Reason string
}

func (d *Definition) maskText(text string) string {
	if d.Mask == nil {
		return text
	}
	return d.Mask(text)
}
