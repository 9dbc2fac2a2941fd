package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// serverLine is how a server of an agent is.
type serverLine = control.Server

// crew is the servers that an agent works with, behind one handler under whose names they are.
type crew struct {
	handler mcp.Handler
	servers func(ctx context.Context) ([]serverLine, error)
	close   func(ctx context.Context)

	// instructions asks what the servers say of themselves now; nil: the handler says it.
	instructions func(ctx context.Context) (string, error)

	// folder is where the servers work, if that is not the current one.
	folder string

	sources map[string]string // where each server's definition is from; nil: servers says
}

// engage starts the servers that the flags name, or finds those of the running dowel.
func (a *app) engage(ctx context.Context, f *agentFlags, s *setup) (*crew, error) {
	definitions, err := a.named(f)
	if err != nil {
		return nil, err
	}
	if len(definitions) == 0 {
		return a.engageAll(ctx, f, s)
	}
	return a.engageNamed(ctx, f, s, definitions)
}

// engageAll goes through the running dowel, which may be this process.
func (a *app) engageAll(ctx context.Context, f *agentFlags, s *setup) (*crew, error) {
	switch {
	case len(f.env) > 0 || f.dir != "":
		return nil, usagef("--env and --dir are for a server that is started by its command behind --, or built in")
	case len(f.options) > 0:
		return nil, usagef("--option is for a built-in server: name it with --server")
	case len(f.headers) > 0:
		return nil, usagef("--header is for servers at a --url")
	}
	o := a.daemonOptions(&f.places)
	o.stdio, o.told = true, aboutModels
	t, err := goThrough(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &crew{handler: t.handler(), close: t.close, instructions: t.instructions}
	c.servers = func(ctx context.Context) ([]serverLine, error) {
		status, err := t.running.Status(ctx)
		return status.Servers, err
	}
	if status, err := t.running.Status(ctx); err == nil && status.PID != os.Getpid() {
		c.folder = a.elsewhere(status, s.set)
	}
	if f.settle {
		a.settleAll(ctx, c)
	}
	return c, nil
}

// elsewhere warns where the dowel that is running was started in another folder, and so works there; it returns that folder. The
// files of a project here may be none of its.
func (a *app) elsewhere(status control.Status, set *config.Set) (folder string) {
	here, err := os.Getwd()
	if err != nil || status.Folder == "" || status.Folder == here {
		return ""
	}
	a.warn("the servers are those of the dowel that runs in %s (process %d), and work there, not here: end it, or name servers with --server", status.Folder, status.PID)
	for _, file := range set.Files {
		if file.Scope == config.Project && !file.Missing && !slices.Contains(status.Files, file.Path) {
			a.warn("the servers of %s are not among them", file.Path)
		}
	}
	return status.Folder
}

// settleAll waits for servers that start for the first time, for a while.
func (a *app) settleAll(ctx context.Context, c *crew) {
	ctx, cancel := context.WithTimeout(ctx, longestSettle)
	defer cancel()
	defer a.stderr.show("")
	for ctx.Err() == nil {
		servers, err := c.servers(ctx)
		if err != nil {
			return // the agent's connection tells
		}
		var awaited []string
		for _, s := range servers {
			if s.Status == hub.Starting && s.Attempt == 0 {
				awaited = append(awaited, s.Name)
			}
		}
		if awaited == nil {
			a.tellMissing(servers)
			return
		}
		a.awaiting(awaited)
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			a.tellMissing(servers)
		}
	}
}

const settlePause = 25 * time.Millisecond

func (a *app) awaiting(names []string) {
	if !a.json {
		a.stderr.show(a.stderr.dim("waiting for " + line(strings.Join(names, ", "))))
	}
}

// tellMissing warns of servers whose tools are not there. That one is switched off is no news.
func (a *app) tellMissing(servers []serverLine) {
	for _, s := range servers {
		switch {
		case s.Status == hub.Ready, s.Status == hub.Stopped, s.Status == hub.Disabled:
		case s.Status == hub.NeedsTrust:
			a.warn("the tools of %s are missing: it came with a project, and waits for your trust: dowel trust %s", s.Name, s.Name)
		case s.Status == hub.Starting:
			a.warn("%s is still starting: its tools are added when it is ready", s.Name)
		default:
			why, look := cmp.Or(s.Problem, s.Cause), "dowel doctor "+s.Name
			if s.Source == commandLine {
				look = "dowel doctor -- with its command, or --url"
			}
			a.warn("the tools of %s are missing, since it %s: %s; see %s", s.Name, statusWords(s.Status), firstLine(why), look)
		}
	}
}

// engageNamed starts a hub of its own for the servers.
func (a *app) engageNamed(ctx context.Context, f *agentFlags, s *setup, definitions []hub.Definition) (*crew, error) {
	logger := slog.New(a.notices())
	info := mcp.Implementation{Name: "dowel", Title: "dowel", Version: version()}
	h := hub.New(&hub.Options{Info: info, Watch: configured.WatchFiles, Logger: logger})
	g := gateway.New(h, &gateway.Options{Info: info, Logger: logger, StartWait: -1})
	var work sync.WaitGroup
	telling, stop := context.WithCancel(context.WithoutCancel(ctx))
	if a.verbose {
		lines := h.Events(telling, hub.StderrWritten)
		work.Go(func() {
			for e := range lines {
				a.serverSays(e)
			}
		})
	}
	h.Apply(definitions, "it is named on the command line")
	c := &crew{handler: g, sources: map[string]string{}}
	for _, d := range definitions {
		c.sources[d.Name] = d.Source
	}
	log, err := s.openAudit()
	if err != nil {
		a.warn("%v", err)
	}
	if log != nil {
		c.handler = mcp.Chain(g, gateway.Audit(log, s.auditOptions(a)))
	}
	c.servers = func(context.Context) ([]serverLine, error) { return control.DescribeAll(h), nil }
	c.close = func(context.Context) {
		g.Close()
		h.Close()
		stop()
		work.Wait()
		if log != nil {
			log.Close()
		}
	}
	if f.settle {
		if err := a.settleNamed(ctx, h, f.connect); err != nil {
			c.close(ctx)
			return nil, err
		}
	}
	return c, nil
}

// serverSays shows a line of a server's stderr.
func (a *app) serverSays(e hub.Event) {
	if a.json {
		encodeLine(a.stderr, map[string]any{"server": e.Upstream, "stderr": e.Line})
		return
	}
	fmt.Fprintf(a.stderr, "%s %s\n", a.stderr.dim(line(e.Upstream)+":"), a.stderr.clean(e.Line))
}

// settleNamed waits until the servers are ready. One that was named and cannot be had is an error.
func (a *app) settleNamed(ctx context.Context, h *hub.Hub, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limitOf(limit))
	defer cancel()
	defer a.stderr.show("")
	for _, u := range h.Upstreams() {
		a.awaiting([]string{u.Name()})
		u.Settle(waiting)
		state := u.State()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case state.Status == hub.Ready, state.Status == hub.Stopped:
		case state.Diagnosis != nil && state.Diagnosis.Advice != "":
			return connectError{u.Name(), fmt.Errorf("%s; %s", state.Diagnosis.Summary, state.Diagnosis.Advice)}
		case state.Err != nil:
			return connectError{u.Name(), state.Err}
		case state.Status == hub.Starting:
			return connectError{u.Name(), fmt.Errorf("it was not ready within %v: %w", limitOf(limit), context.DeadlineExceeded)}
		default:
			return connectError{u.Name(), fmt.Errorf("it %s: %s", statusWords(state.Status), state.Cause)}
		}
	}
	return nil
}

// limitOf is --connect-timeout as a bound.
func limitOf(d time.Duration) time.Duration {
	if d <= 0 {
		return 1 << 62
	}
	return d
}

// named are the servers of --server, --url and the command behind --; none where all are to be used.
func (a *app) named(f *agentFlags) (all []hub.Definition, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	for _, name := range f.servers {
		d, err := a.byServerFlag(f, name)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	var t target
	switch {
	case f.whence.url != "":
		t, err = f.byURL()
		t.name = nameOfURL(f.whence.url)
	case len(f.command) > 0:
		t, err = f.started(f.command)
		t.name = nameOfCommand(f.command)
	default:
		return all, nil
	}
	d := f.definitionOf(t)
	for n := 2; slices.ContainsFunc(all, func(o hub.Definition) bool { return o.Name == d.Name }); n++ {
		d.Name = fmt.Sprintf("%s%d", t.name, n)
	}
	return append(all, d), err
}

func (f *agentFlags) check() error {
	for i, name := range f.servers {
		if slices.Contains(f.servers[:i], name) {
			return usagef("--server %s is there twice", name)
		}
	}
	switch given := len(f.servers) > 0; {
	case len(f.headers) > 0 && f.whence.url == "":
		return usagef("--header is for servers at a --url")
	case f.whence.url != "" && len(f.command) > 0:
		return usagef("there is both a --url and a command behind --: add one of them to your configuration, and name it with --server")
	case len(f.options) > 0 && (len(f.servers) != 1):
		return usagef("--option is for one built-in server: name it, and no other, with --server")
	case given && len(f.command) == 0 && (len(f.env) > 0 || f.dir != "") && len(f.servers) > 1:
		return usagef("--env and --dir are for one server: name no other with --server")
	}
	return nil
}

// byServerFlag is a server of the running dowel, of the configuration, or one that is built in.
func (a *app) byServerFlag(f *agentFlags, name string) (hub.Definition, error) {
	if f.found == nil && (len(f.files) > 0 || f.project != "") {
		definitions, err := a.definitions(f.places)
		if err != nil {
			return hub.Definition{}, err
		}
		f.found = directoryOf(definitions)
	}
	d := f.directory()
	if !slices.Contains(d.known(), name) {
		if strings.Contains(name, ",") {
			return hub.Definition{}, usagef("no server is called %s; several are named one by one: --server %s", name, strings.ReplaceAll(name, ",", " --server "))
		}
		return hub.Definition{}, usagef("no server is called %s%s", name, suggestion(name, d.known()))
	}
	w := f.whence
	if len(f.command) > 0 { // whose these are
		w.env, w.dir = nil, ""
	}
	t, err := w.byName(name)
	if err != nil {
		return hub.Definition{}, err
	}
	if own, ok := d.definitions[name]; ok && len(f.options) == 0 {
		return own, nil
	}
	def := f.definitionOf(t)
	def.Source = d.source(name)
	return def, nil
}

// What a definition comes from beside files.
const (
	builtInSource = "built in"
	commandLine   = "command line"
)

// definitionOf is a target as a server of a hub.
func (f *agentFlags) definitionOf(t target) hub.Definition {
	d := hub.Definition{Name: t.name, Target: t.dial, Origin: t.origin, Source: commandLine, Fingerprint: commandLine, Options: t.options}
	d.Options.Limits.Connect = limit(f.connect)
	if watchWire != nil {
		d.Options.Wire.Tap = watchWire(nil)
	}
	if len(t.header) > 0 {
		d.Options.HTTP.Header = func(context.Context) (http.Header, error) { return t.header, nil }
	}
	return d
}

// source says where a server's definition is from: user, project, built in or command line; empty where there is no such server.
func (c *crew) source(server string) string {
	sources := c.sources
	if sources == nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		servers, err := c.servers(ctx)
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

// own reports whether a server is one of the user's: what is allowed for good is kept of those.
func (c *crew) own(server string) bool {
	from := c.source(server)
	return from == string(config.User) || from == builtInSource
}
