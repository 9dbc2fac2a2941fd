package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Directory maps names to servers. It holds the servers of the running daemon, or else of the
// configuration, and the built-in servers.
type Directory struct {
	running     *control.Client // nil if no daemon is running
	names       []string
	Definitions map[string]hub.Definition
	holds       map[string]hub.Hold // servers that are not started, and why
	sources     map[string]string   // definitions of the daemon's servers by name
	silent      error               // a daemon runs and does not answer; the directory is of the configuration
}

const (
	// StatusTimeout bounds asking a running daemon for facts that a command can do without.
	StatusTimeout = 2 * time.Second
	// AnswerTimeout bounds asking a running daemon for its servers.
	AnswerTimeout = 30 * time.Second
)

// ReadDirectory asks the running daemon for its servers, or reads the configuration if no daemon is
// running, or if it does not answer in time. If the configuration cannot be read, the directory has
// only the built-in servers; dowel config check reports the reason.
func ReadDirectory(timeout time.Duration) *Directory {
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, fmt.Errorf("it did not answer within %v", timeout))
	defer cancel()
	s, err := factory.RunningDaemon().Status(ctx)
	if err == nil {
		d := &Directory{running: factory.RunningDaemon(), holds: map[string]hub.Hold{}, sources: map[string]string{}}
		for _, server := range s.Servers {
			d.names = append(d.names, server.Name)
			d.sources[server.Name] = server.Source
			if server.Status.Held() {
				d.holds[server.Name] = hub.Hold{Status: server.Status, Reason: server.Cause}
			}
		}
		return d
	}
	d := NewDirectory(readDefinitions())
	if ctx.Err() != nil && !errors.Is(err, control.ErrNotRunning) {
		d.silent = exit.ConnectError{Server: "the running dowel", Err: fmt.Errorf("%w: it may be very busy; dowel doctor and its log tell more, dowel down ends it", context.Cause(ctx))}
	}
	return d
}

// NewDirectory returns a directory of the given definitions and the built-in servers.
func NewDirectory(definitions []hub.Definition) *Directory {
	d := &Directory{Definitions: map[string]hub.Definition{}, holds: map[string]hub.Hold{}}
	for _, def := range definitions {
		d.names = append(d.names, def.Name)
		d.Definitions[def.Name] = def
		if def.Hold.Status != 0 {
			d.holds[def.Name] = def.Hold
		}
	}
	return d
}

// readDefinitions reads the configuration of the current folder. It returns nil if that fails.
func readDefinitions() []hub.Definition {
	o, err := new(factory.Places).ConfigOptions()
	if err != nil {
		return nil
	}
	var choices configured.Choices = noState{}
	if store, err := factory.OpenState(func(error) {}); err == nil {
		choices = store
	}
	s := configured.New(nil, configured.Options{Config: o, Choices: choices, Logins: factory.OpenLogins(func(error) {}), Logger: slog.New(slog.DiscardHandler)})
	return s.Look()
}

// noState replaces the state file if it cannot be opened. It trusts no project and stores nothing.
type noState struct{}

func (noState) Enabled(string) (on, said bool)                   { return false, false }
func (noState) SetEnabled(string, bool) error                    { return errors.ErrUnsupported }
func (noState) Trusted(_, _ string) (_ config.Agreement, _ bool) { return config.Agreement{}, false }
func (noState) Trust(_, _ string, _ config.Agreement) error      { return errors.ErrUnsupported }
func (noState) TrustKey() ([]byte, error)                        { return nil, errors.ErrUnsupported }
func (noState) DefinitionLog(_, _ string) client.DefinitionLog   { return nil }

var (
	_ configured.Choices = (*state.State)(nil)
	_ configured.Choices = noState{}
)

// Known returns all names. Built-in servers come last.
func (d *Directory) Known() []string {
	all := slices.Clone(d.names)
	for _, name := range builtin.Names() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// findTarget returns the server with the given name. ok is false if only a built-in server may have
// the name.
func (d *Directory) findTarget(name string) (t Target, ok bool, err error) {
	switch hold, held := d.holds[name]; {
	case d.silent != nil: // a second process of the server must not start in its place
		return t, true, d.silent
	case !slices.Contains(d.names, name):
		return t, false, nil
	case held:
		return t, true, exit.ConnectError{Server: name, Err: fmt.Errorf("it %s: %s", StatusWords(hold.Status), hold.Reason)}
	case d.running != nil:
		at := d.running.Gateway() + "/" + name
		dial := streamable.URL{URL: at, Client: d.running.HTTP()}
		return Target{Name: name, Origin: "the dowel that is running", Dial: dial, running: d.running}, true, nil
	}
	def := d.Definitions[name]
	return Target{Name: name, Origin: def.Origin, Dial: def.Target, Options: def.Options, log: def.Log, howToAccept: def.HoldChanged}, true, nil
}

// StatusWords formats a status to follow "it", as in "it is disabled".
func StatusWords(s hub.Status) string {
	if s == hub.Disabled {
		return "is disabled"
	}
	return s.String()
}

// newGatewayTarget returns all servers of the directory as one: the gateway of the running daemon,
// or a new gateway over new connections. The latter starts the servers at its first request, and
// waits for installs as [AwaitInstalls] does.
func (d *Directory) newGatewayTarget(show func(string)) Target {
	if d.running != nil {
		return Target{Name: allServers, Dial: streamable.URL{URL: d.running.Gateway(), Client: d.running.HTTP()}, Origin: "the dowel that is running"}
	}
	var definitions []hub.Definition
	for _, name := range d.names {
		definitions = append(definitions, d.Definitions[name])
	}
	if len(definitions) == 0 {
		definitions = daemon.BuiltInServers()
	}
	h := hub.New(&hub.Options{Logger: slog.New(slog.DiscardHandler)})
	g := gateway.New(h, nil)
	var once sync.Once
	start := func(ctx context.Context) {
		h.Apply(definitions, "a command needs it")
		settling, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		h.Settle(settling) // the gateway reports servers that take longer
		AwaitInstalls(ctx, h, show)
	}
	ready := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		once.Do(func() { start(ctx) })
		return g.ServeMCP(ctx, req)
	})
	return Target{Name: allServers, Origin: "the configuration", Dial: ready, close: func() {
		g.Close()
		h.Close()
	}}
}

// settleTimeout bounds how long a command for all servers waits until they have started.
const settleTimeout = 15 * time.Second

// applyDefinition copies the options of the server's definition to o. A revision that is set in o
// takes precedence.
func (t Target) applyDefinition(o *client.Options) {
	if t.Options.HTTP.Header != nil {
		o.HTTP.Header = t.Options.HTTP.Header
	}
	if t.Options.HTTP.Client != nil {
		o.HTTP.Client = t.Options.HTTP.Client
	}
	if o.Wire.Revision == "" {
		o.Wire.Revision = t.Options.Wire.Revision
	}
	o.Wire.SerializeAsks = o.Wire.SerializeAsks || t.Options.Wire.SerializeAsks
	o.Limits.Start, o.Limits.Install = t.Options.Limits.Start, t.Options.Limits.Install
}

// Sources of definitions other than files.
const (
	BuiltInSource = "built in"
	CommandLine   = "command line"
)

// CheckServers returns a usage error for the first name that the daemon does not know.
func CheckServers(s control.Status, names []string) error {
	var known []string
	for _, server := range s.Servers {
		known = append(known, server.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return exit.Usagef("%w: %s%s", control.ErrNoServer, name, suggest.Hint(name, known))
		}
	}
	return nil
}

// Source returns the source of a server's definition: a file, or a constant such as
// [BuiltInSource].
func (d *Directory) Source(name string) string {
	if def, ok := d.Definitions[name]; ok {
		return def.Source
	}
	if from, ok := d.sources[name]; ok {
		return from
	}
	return BuiltInSource
}
