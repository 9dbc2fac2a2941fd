package agentcmd

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/cli/connect"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/definitions"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/term"
	"github.com/dowel-mcp/dowel/mcp"
)

// Server is the state of one server of an agent.
type Server = control.Server

// serverSet is the servers of an agent behind one handler, which qualifies the names of their
// tools.
type serverSet struct {
	handler     mcp.Handler
	listServers func(ctx context.Context) ([]Server, error)
	restart     func(ctx context.Context, server string) error
	accept      func(ctx context.Context, server string, change client.DefinitionChange) error // a definition
	close       func(ctx context.Context)

	// recordDial returns the context of a dial to handler that records its messages;
	// nil records none.
	recordDial func(context.Context) context.Context

	// fetchInstructions returns the current instructions of the servers. If it is nil, the
	// handler's discovery has them.
	fetchInstructions func(ctx context.Context) (string, error)

	// followFrames calls show with the frames of the journal, the kept ones first, until ctx ends
	// or there can be no more.
	followFrames func(ctx context.Context, show func(*journal.Frame)) error

	// folder is the servers' working folder; "" means the current folder.
	folder string

	isPrivate bool // started for the agent alone

	sources map[string]string // source of each server's definition; if nil, listServers has it
}

// openServers starts the servers that the flags name. If they name none, it joins the running
// dowel.
func openServers(ctx context.Context, f *factory.Factory, opts *Flags, s *environment, name *clientName) (*serverSet, error) {
	if opts.Hub != nil {
		return openOwnHub(opts.Hub, name), nil
	}
	definitions, err := namedDefinitions(f, opts)
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 {
		return openAllServers(ctx, f, opts, s, name)
	}
	return openNamedServers(ctx, f, opts, s, definitions)
}

// openAllServers joins the running dowel for all servers. Without one, this process becomes it.
func openAllServers(ctx context.Context, f *factory.Factory, opts *Flags, s *environment, name *clientName) (*serverSet, error) {
	switch {
	case len(opts.Env) > 0 || opts.Dir != "":
		return nil, exit.Usagef("--env and --dir are for a built-in server or a command after --")
	case len(opts.BuiltinOptions) > 0:
		return nil, exit.Usagef("--option is for a built-in server: name it with --server")
	case len(opts.Headers) > 0:
		return nil, exit.Usagef("--header is for servers at a --url")
	}
	o := f.DaemonOptions(&opts.Places)
	o.Stdio, o.Reported, o.Client = true, isAboutModels, name.currentName
	t, err := daemon.Join(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &serverSet{handler: t.Handler(), close: t.Close, fetchInstructions: t.Instructions}
	c.listServers = func(ctx context.Context) ([]Server, error) {
		status, err := t.Running.Status(ctx)
		return status.Servers, err
	}
	c.restart = func(ctx context.Context, server string) error { return t.Running.Do(ctx, server, "restart") }
	c.accept = func(ctx context.Context, server string, change client.DefinitionChange) error {
		return t.Running.AcceptDefinitions(ctx, server, change)
	}
	c.followFrames = func(ctx context.Context, show func(*journal.Frame)) error {
		return followDaemonFrames(ctx, t.Running, show)
	}
	if status, err := t.Running.Status(ctx); err == nil && status.PID != os.Getpid() {
		c.folder = warnOtherFolder(f, status, s.Set)
	}
	if opts.AwaitServers {
		awaitAll(ctx, f, c)
	}
	return c, nil
}

// warnOtherFolder warns if the running dowel works in another folder, and returns that folder, or
// "". It also names project files of this folder that the running dowel does not use.
func warnOtherFolder(f *factory.Factory, status control.Status, set *config.Set) (folder string) {
	current, err := os.Getwd()
	if err != nil || status.Folder == "" || status.Folder == current {
		return ""
	}
	f.Warn("using the servers of the dowel that runs in %s (process %d): they work there, not here; stop it, or name servers with --server", status.Folder, status.PID)
	for _, file := range set.Files {
		if file.Scope == config.Project && !file.Missing && !slices.Contains(status.Files, file.Path) {
			f.Warn("the running dowel does not use the servers of %s", file.Path)
		}
	}
	return status.Folder
}

// awaitAll waits until every server has finished its first start, at most maxServerWait, and warns
// of servers that are not ready.
func awaitAll(ctx context.Context, f *factory.Factory, c *serverSet) {
	ctx, cancel := context.WithTimeout(ctx, maxServerWait)
	defer cancel()
	defer f.Stderr.SetStatus("")
	servers, err := AwaitFirstStarts(ctx, c.listServers, func(names string) { showStatus(f, "waiting for "+names) })
	if err == nil { // else the agent's connection reports the error
		WarnMissing(f, servers)
	}
}

// SettlePause is the time between two looks at servers that are starting.
const SettlePause = 25 * time.Millisecond

// retryWait is how long AwaitFirstStarts waits for servers that have failed and start again, so
// that the reason of the failure is known.
const retryWait = 2 * time.Second

// AwaitFirstStarts waits until no server is starting for the first time, or ctx ends, and returns
// the servers. Servers that start again count in the first [retryWait] alone. show is called
// repeatedly with the awaited servers, as text for a terminal.
func AwaitFirstStarts(ctx context.Context, list func(context.Context) ([]Server, error), show func(names string)) ([]Server, error) {
	start := time.Now()
	for {
		servers, err := list(ctx)
		if err != nil {
			return nil, err
		}
		var awaited []string
		for _, s := range servers {
			if s.Status == hub.Starting && (s.Attempt == 0 || time.Since(start) < retryWait) {
				awaited = append(awaited, term.Line(s.Name))
			}
		}
		if awaited == nil {
			return servers, nil
		}
		show(strings.Join(awaited, ", "))
		select {
		case <-time.After(SettlePause):
		case <-ctx.Done():
			return servers, nil
		}
	}
}

// showStatus shows work in progress on stderr.
func showStatus(f *factory.Factory, text string) {
	if !f.JSON {
		f.Stderr.SetStatus(f.Stderr.Dim(text))
	}
}

// WarnMissing warns of servers without tools, because they failed, need trust or are still
// starting. It does not warn of disabled servers.
func WarnMissing(f *factory.Factory, servers []Server) {
	for _, s := range servers {
		switch {
		case s.Status == hub.Ready, s.Status == hub.Stopped, s.Status == hub.Disabled:
		case s.Status == hub.NeedsTrust:
			f.Warn("the tools of %s are missing: %s", s.Name, s.Cause)
		case s.Status == hub.Starting && !s.Installing.IsZero():
			f.Warn("%s is being installed: its tools are added when it is ready", s.Name)
		case s.Status == hub.Starting:
			f.Warn("%s is still starting: its tools are added when it is ready", s.Name)
		case s.Status == hub.NeedsLogin && s.Advice != "":
			f.Warn("the tools of %s are missing, since it needs a login. %s", s.Name, s.Advice)
		default:
			why, look := cmp.Or(s.Problem, s.Cause), "dowel doctor "+s.Name
			if s.Source == connect.CommandLine {
				look = "dowel doctor with its command after --, or its --url"
			}
			f.Warn("the tools of %s are missing, since it %s: %s; see %s", s.Name, connect.StatusWords(s.Status), term.FirstLine(why), look)
		}
	}
}

// lookupSource returns the source of a server's definition: user, project, built in or command
// line. It returns "" if the server is unknown.
func (s *serverSet) lookupSource(server string) string {
	sources := s.sources
	if sources == nil {
		ctx, cancel := context.WithTimeout(context.Background(), connect.StatusTimeout)
		defer cancel()
		servers, err := s.listServers(ctx)
		if err != nil {
			return ""
		}
		sources = map[string]string{}
		for _, s := range servers {
			sources[s.Name] = s.Source
		}
	}
	return sources[server]
}

// findChange returns how the current definition of a tool differs from the accepted one, or nil.
// The hub that offers the tool decides.
func (s *serverSet) findChange(server, tool string) *control.Changed {
	ctx, cancel := context.WithTimeout(context.Background(), connect.StatusTimeout)
	defer cancel()
	servers, err := s.listServers(ctx)
	if err != nil {
		return &control.Changed{LocalName: tool, DefinitionChange: client.DefinitionChange{
			Kind: definitions.Tool, Name: tool, Time: time.Now(), Lines: []string{"the running dowel does not say whether it has changed: " + err.Error()},
		}}
	}
	for _, described := range servers {
		for i := range described.Changed {
			if c := &described.Changed[i]; described.Name == server && c.Kind == definitions.Tool && c.LocalName == tool {
				return c
			}
		}
	}
	return nil
}

// isUserServer reports whether a server belongs to the user's configuration or is built in. Only
// such servers can have permanent approvals.
func (s *serverSet) isUserServer(server string) bool {
	from := s.lookupSource(server)
	return from == string(config.User) || from == connect.BuiltInSource
}
