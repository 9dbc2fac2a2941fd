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
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Directory knows which servers have names: those of the dowel that is running, else those of the configuration; and those
// that are built in.
type Directory struct {
	running     *control.Client // nil where none is
	names       []string
	Definitions map[string]hub.Definition
	holds       map[string]hub.Hold // of the running dowel's, that are not started
	sources     map[string]string   // where the running dowel's are defined
}

// StatusTimeout bounds asking a running dowel which servers it has.
const StatusTimeout = 2 * time.Second

// ReadDirectory looks them up. A configuration that cannot be read has no names; dowel config check says why.
func ReadDirectory() *Directory {
	ctx, cancel := context.WithTimeout(context.Background(), StatusTimeout)
	defer cancel()
	if s, err := factory.RunningDaemon().Status(ctx); err == nil {
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
	return NewDirectory(readDefinitions())
}

// NewDirectory knows the servers of a configuration, while no dowel is running.
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

func readDefinitions() []hub.Definition {
	o, err := new(factory.Places).ConfigOptions()
	if err != nil {
		return nil
	}
	var choices configured.Choices = noState{}
	if store, err := factory.OpenState(func(error) {}); err == nil {
		choices = store
	}
	s := configured.New(hub.New(nil), configured.Options{Config: o, Choices: choices, Logger: slog.New(slog.DiscardHandler)})
	return s.Look()
}

// noState are those of a user for whom nothing can be kept: nothing of a project is trusted.
type noState struct{}

func (noState) Enabled(string) (on, said bool)               { return false, false }
func (noState) SetEnabled(string, bool) error                { return errors.ErrUnsupported }
func (noState) Trusted(_, _ string) (string, []string, bool) { return "", nil, false }
func (noState) Trust(_, _, _ string, _ []string) error       { return errors.ErrUnsupported }

var (
	_ configured.Choices = (*state.State)(nil)
	_ configured.Choices = noState{}
)

// Known are all names, those that are built in last.
func (d *Directory) Known() []string {
	all := slices.Clone(d.names)
	for _, name := range builtin.Names() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// findTarget returns the server of a name; ok is false for one that is only built in.
func (d *Directory) findTarget(name string) (t Target, ok bool, err error) {
	switch hold, held := d.holds[name]; {
	case !slices.Contains(d.names, name):
		return t, false, nil
	case held:
		return t, true, exit.ConnectError{Server: name, Err: fmt.Errorf("it %s: %s", StatusWords(hold.Status), hold.Reason)}
	case d.running != nil:
		at := d.running.Gateway() + "/" + name
		return Target{Name: name, Origin: "the dowel that is running", Dial: streamable.URL{URL: at, Client: d.running.HTTP()}}, true, nil
	}
	def := d.Definitions[name]
	return Target{Name: name, Origin: def.Origin, Dial: def.Target, Options: def.Options}, true, nil
}

// StatusWords puts a status behind "it".
func StatusWords(s hub.Status) string {
	if s == hub.Disabled {
		return "is disabled"
	}
	return s.String()
}

// newGatewayTarget returns everything that has a name as one server: the gateway of the running dowel, or one that is made for the while.
func (d *Directory) newGatewayTarget() Target {
	if d.running != nil {
		return Target{Name: "all servers", Dial: streamable.URL{URL: d.running.Gateway(), Client: d.running.HTTP()}, Origin: "the dowel that is running"}
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
	start := sync.OnceFunc(func() {
		h.Apply(definitions, "a command needs it")
		ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
		defer cancel()
		h.Settle(ctx) // those that take longer are told of
	})
	ready := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		start()
		return g.ServeMCP(ctx, req)
	})
	return Target{Name: "all servers", Origin: "the configuration", Dial: ready, close: func() {
		g.Close()
		h.Close()
	}}
}

// settleTimeout is how long a command that is about all servers waits for those that are starting.
const settleTimeout = 15 * time.Second

// applyDefinition gives a client what the definition of its server says.
func (t Target) applyDefinition(o *client.Options) {
	if t.Options.HTTP.Header != nil {
		o.HTTP.Header = t.Options.HTTP.Header
	}
	if o.Wire.Revision == "" {
		o.Wire.Revision = t.Options.Wire.Revision
	}
	o.Wire.SerializeAsks = o.Wire.SerializeAsks || t.Options.Wire.SerializeAsks
	o.Limits.Start = t.Options.Limits.Start
}

// What a definition comes from beside files.
const (
	BuiltInSource = "built in"
	CommandLine   = "command line"
)

// CheckServers complains of names that a running dowel has no server of.
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

// Source says where a server's definition is from.
func (d *Directory) Source(name string) string {
	if def, ok := d.Definitions[name]; ok {
		return def.Source
	}
	if from, ok := d.sources[name]; ok {
		return from
	}
	return BuiltInSource
}
