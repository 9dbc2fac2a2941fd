package main

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
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// directory knows which servers have names: those of the dowel that is running, else those of the configuration; and those
// that are built in.
type directory struct {
	running     *control.Client // nil where none is
	names       []string
	definitions map[string]hub.Definition
	held        map[string]hub.Hold // of the running dowel's, that are not started
	sources     map[string]string   // where the running dowel's are defined
}

// lookTime bounds asking a running dowel which servers it has.
const lookTime = 2 * time.Second

// readDirectory looks them up. A configuration that cannot be read has no names; dowel config check says why.
func readDirectory() *directory {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	if s, err := running().Status(ctx); err == nil {
		d := &directory{running: running(), held: map[string]hub.Hold{}, sources: map[string]string{}}
		for _, server := range s.Servers {
			d.names = append(d.names, server.Name)
			d.sources[server.Name] = server.Source
			if server.Status.Held() {
				d.held[server.Name] = hub.Hold{Status: server.Status, Reason: server.Cause}
			}
		}
		return d
	}
	return directoryOf(configuredDefinitions())
}

// directoryOf knows the servers of a configuration, while no dowel is running.
func directoryOf(definitions []hub.Definition) *directory {
	d := &directory{definitions: map[string]hub.Definition{}, held: map[string]hub.Hold{}}
	for _, def := range definitions {
		d.names = append(d.names, def.Name)
		d.definitions[def.Name] = def
		if def.Hold.Status != 0 {
			d.held[def.Name] = def.Hold
		}
	}
	return d
}

func configuredDefinitions() []hub.Definition {
	o, err := new(places).config()
	if err != nil {
		return nil
	}
	var choices configured.Choices = noChoices{}
	if store, err := openState(func(error) {}); err == nil {
		choices = store
	}
	s := configured.New(hub.New(nil), configured.Options{Config: o, Choices: choices, Logger: slog.New(slog.DiscardHandler)})
	return s.Look()
}

// noChoices are those of a user for whom nothing can be kept: nothing of a project is trusted.
type noChoices struct{}

func (noChoices) Enabled(string) (on, said bool)               { return false, false }
func (noChoices) SetEnabled(string, bool) error                { return errors.ErrUnsupported }
func (noChoices) Trusted(_, _ string) (string, []string, bool) { return "", nil, false }
func (noChoices) Trust(_, _, _ string, _ []string) error       { return errors.ErrUnsupported }

var (
	_ configured.Choices = (*state.State)(nil)
	_ configured.Choices = noChoices{}
)

// known are all names, those that are built in last.
func (d *directory) known() []string {
	all := slices.Clone(d.names)
	for _, name := range builtin.Names() {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// target returns the server of a name; ok is false for one that is only built in.
func (d *directory) target(name string) (t target, ok bool, err error) {
	switch hold, held := d.held[name]; {
	case !slices.Contains(d.names, name):
		return t, false, nil
	case held:
		return t, true, connectError{name, fmt.Errorf("it %s: %s", statusWords(hold.Status), hold.Reason)}
	case d.running != nil:
		at := d.running.Gateway() + "/" + name
		return target{name: name, origin: "the dowel that is running", dial: streamable.URL{URL: at, Client: d.running.HTTP()}}, true, nil
	}
	def := d.definitions[name]
	return target{name: name, origin: def.Origin, dial: def.Target, options: def.Options}, true, nil
}

// statusWords puts a status behind "it".
func statusWords(s hub.Status) string {
	if s == hub.Disabled {
		return "is disabled"
	}
	return s.String()
}

// all returns everything that has a name as one server: the gateway of the running dowel, or one that is made for the while.
func (d *directory) all() target {
	if d.running != nil {
		return target{name: "all servers", dial: streamable.URL{URL: d.running.Gateway(), Client: d.running.HTTP()}, origin: "the dowel that is running"}
	}
	var definitions []hub.Definition
	for _, name := range d.names {
		definitions = append(definitions, d.definitions[name])
	}
	if len(definitions) == 0 {
		definitions = builtIn()
	}
	h := hub.New(&hub.Options{Logger: slog.New(slog.DiscardHandler)})
	g := gateway.New(h, nil)
	start := sync.OnceFunc(func() {
		h.Apply(definitions, "a command needs it")
		ctx, cancel := context.WithTimeout(context.Background(), longestStart)
		defer cancel()
		h.Settle(ctx) // those that take longer are told of
	})
	ready := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		start()
		return g.ServeMCP(ctx, req)
	})
	return target{name: "all servers", origin: "the configuration", dial: ready, close: func() {
		g.Close()
		h.Close()
	}}
}

// longestStart is how long a command that is about all servers waits for those that are starting.
const longestStart = 15 * time.Second

// extend gives a client what the definition of its server says.
func (t target) extend(o *client.Options) {
	if t.options.HTTP.Header != nil {
		o.HTTP.Header = t.options.HTTP.Header
	}
	if o.Wire.Revision == "" {
		o.Wire.Revision = t.options.Wire.Revision
	}
	o.Wire.SerializeAsks = o.Wire.SerializeAsks || t.options.Wire.SerializeAsks
	o.Limits.Start = t.options.Limits.Start
}
