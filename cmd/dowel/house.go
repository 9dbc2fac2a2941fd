package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/config/watch"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/spf13/cobra"
)

// places say where configuration and state are.
type places struct {
	files   []string
	project string
}

func (p *places) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&p.files, "config", nil, "read this `file` instead of all others (repeatable)")
	cmd.Flags().StringVar(&p.project, "project", "", "the `folder` of the project (default: the current one)")
}

// config says where the files are.
func (p *places) config() (config.Options, error) {
	folder := p.project
	if folder == "" {
		folder = "."
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return config.Options{}, err
	}
	o := config.Options{Project: folder}
	for _, file := range p.files {
		if file, err = filepath.Abs(file); err != nil {
			return o, err
		}
		if _, err := os.Stat(file); err != nil {
			return o, usagef("--config: %w", err)
		}
		o.Files = append(o.Files, file)
	}
	return o, nil
}

// socket is where a running dowel of the user is reached.
func (p *places) socket() string { return control.Path(runtimeDir(), stateDir()) }

// stateDir is the folder of what dowel keeps of the user's choices; empty where there is none.
func stateDir() string {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return ""
	}
	return filepath.Dir(path)
}

// choices opens what the user has chosen.
func (a *app) choices() (*state.State, error) {
	path, err := state.Path(runtime.GOOS, os.Getenv)
	if err != nil {
		return nil, err
	}
	return state.Open(path, state.Options{Warn: func(err error) { a.warn("%v", err) }})
}

// house is a running dowel: the servers, the gateway in front of them, and what keeps both in step with the files.
type house struct {
	app      *app
	hub      *hub.Hub
	source   *configured.Source
	gateway  *gateway.Gateway
	state    *state.State
	settings config.Gateway
	web      atomic.Pointer[web]
	alone    bool // it serves the client that has started it, and nobody else
	ending   atomic.Bool
	began    time.Time

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
	ends []func(context.Context) error // of the ways in
	log  *os.File                      // of the audit

	place   *control.Place
	yield   sync.Once
	yielded chan struct{} // closed when another dowel is to take the place of this one
}

// newHouse builds a house; load starts its servers.
func (a *app) newHouse(f upFlags) (*house, error) {
	where, err := f.places.config()
	if err != nil {
		return nil, err
	}
	store, err := a.choices()
	if err != nil {
		return nil, err
	}
	logger := slog.New(a.notices())
	h := &house{app: a, state: store, began: time.Now(), yielded: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	info := mcp.Implementation{Name: "dowel", Title: "dowel", Version: version()}
	h.hub = hub.New(&hub.Options{Info: info, Cache: newCatalogCache(), Watch: configured.WatchFiles, Logger: logger})
	h.gateway = gateway.New(h.hub, &gateway.Options{Info: info, Logger: logger})
	h.source = configured.New(h.hub, configured.Options{Config: where, Choices: store, Fallback: builtIn(), Logger: logger})
	return h, nil
}

// moveIn starts a house at a place: its servers, and what lets others in. Where there is an error, the place is released.
func (a *app) moveIn(ctx context.Context, place *control.Place, f upFlags, cause string) (_ *house, err error) {
	h, err := a.newHouse(f)
	if err != nil {
		place.Release()
		return nil, err
	}
	h.place, h.alone = place, f.stdio && f.address == ""
	defer func() {
		if err != nil {
			h.moveOut(context.Background())
		}
	}()
	if err := h.load(cause); err != nil {
		return nil, err
	}
	h.ends = append(h.ends, h.listen(place))
	if !f.stdio {
		if err := h.askTrust(ctx); err != nil {
			return nil, err
		}
	}
	if !f.stdio || f.address != "" {
		front, err := h.open(f)
		if err != nil {
			return nil, err
		}
		h.ends = append(h.ends, front.shutdown)
	}
	return h, nil
}

// moveOut lets nobody in any more, gives calls in flight a moment, ends the servers, and releases the place.
func (h *house) moveOut(ctx context.Context) {
	h.closeDoors(ctx)
	h.close()
}

// closeDoors lets nobody in any more, and gives calls in flight a moment.
func (h *house) closeDoors(ctx context.Context) {
	h.ending.Store(true)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := shutdown(end, h.ends...); err != nil {
		h.app.warn("%v", err)
	}
	h.ends = nil
}

// look reads the configuration, and starts nothing.
func (a *app) look(where places) (*configured.Source, error) {
	o, err := where.config()
	if err != nil {
		return nil, err
	}
	store, err := a.choices()
	if err != nil {
		return nil, err
	}
	s := configured.New(hub.New(nil), configured.Options{Config: o, Choices: store, Logger: slog.New(a.notices())})
	s.Look()
	return s, nil
}

// definitions are those of the configuration.
func (a *app) definitions(where places) ([]hub.Definition, error) {
	s, err := a.look(where)
	if err != nil {
		return nil, err
	}
	return s.Look(), nil
}

// unasked are the built-in servers that are started for somebody who has not named any.
func unasked() (names []string) {
	for _, d := range builtin.Describe() {
		if !d.Local {
			names = append(names, d.Name)
		}
	}
	return names
}

// builtIn are the servers of a user without a configuration, each a child of this process.
func builtIn() (all []hub.Definition) {
	for _, name := range unasked() {
		d := hub.Definition{Name: name, Origin: "built into dowel", Source: "built in", Fingerprint: "built in " + version()}
		if self, err := os.Executable(); err != nil {
			d.Hold = hub.Hold{Status: hub.NeedsConfiguration, Reason: "dowel cannot find itself: " + err.Error()}
		} else {
			d.Target = stdio.Command{Path: self, Args: []string{"serve", name}}
		}
		all = append(all, d)
	}
	return all
}

// load reads the files, starts the servers, and keeps both in step from then on.
func (h *house) load(cause string) error {
	set := h.source.Load(cause)
	h.complain(set)
	settings, err := gatewayOf(set)
	if err != nil {
		return err
	}
	h.settings = settings
	h.work.Go(h.follow)
	return h.audit()
}

// gatewayOf returns how the gateway is set up. Where that is not clear it must not be opened: it might lack its token.
func gatewayOf(set *config.Set) (config.Gateway, error) {
	settings, problems := set.Gateway.Resolve(set.Variables)
	for _, p := range set.Problems {
		if broken := slices.ContainsFunc(set.Files, func(f config.File) bool { return f.Path == p.Path && f.Broken && f.Scope == config.User }); broken {
			problems = append(problems, p)
		}
	}
	for _, p := range problems {
		if p.Severity == config.Error {
			return settings, fmt.Errorf("the gateway is not opened, since it is not clear who may use it: %w", p)
		}
	}
	return settings, nil
}

// complain shows what is wrong with the files; what is wrong with a server is in its row.
func (h *house) complain(set *config.Set) {
	for _, p := range set.Problems {
		if told := h.app.models && aboutModels(p); !told && (p.Server == "" || p.Severity == config.Warning) {
			h.app.warn("%s", p.Text())
		}
	}
	for _, shadow := range set.Shadowed {
		h.app.notice(fmt.Sprintf("%s of %s is shadowed by that of %s, and is not started", shadow.Name, shadow.Path, shadow.By.Path))
	}
}

// follow reads the files again when they change.
func (h *house) follow() {
	for set := range h.source.Changes(h.life, watch.Options{Warn: func(err error) { h.app.warn("%v", err) }}) {
		h.complain(set)
		if now, err := gatewayOf(set); err == nil && !now.Same(h.settings) {
			h.app.warn("what the files say of the gateway counts when dowel is started again")
		}
	}
}

func (h *house) close() {
	h.end()
	h.work.Wait()
	h.gateway.Close()
	h.hub.Close()
	if h.log != nil {
		h.log.Close()
	}
	if err := h.place.Release(); err != nil {
		h.app.warn("%v", err)
	}
}

// serverOptions are those of every way into the gateway.
func (h *house) serverOptions() transport.ServerOptions {
	return transport.ServerOptions{Logger: slog.New(h.app.notices())}
}

// offered is the gateway, with all tools or a search of them.
func (h *house) offered(f upFlags) *gateway.Gateway {
	if f.toolSearch || h.settings.ToolSearch {
		return h.gateway.WithToolSearch(append(h.state.Favourites(), h.settings.Pinned...)...)
	}
	return h.gateway
}

// clients are the gateways for the clients that the configuration names.
func (h *house) clients() map[string]*gateway.Gateway {
	all := map[string]*gateway.Gateway{}
	for name, c := range h.settings.Clients {
		all[name] = h.gateway
		if c.ToolSearch != nil && *c.ToolSearch || c.ToolSearch == nil && h.settings.ToolSearch {
			all[name] = h.gateway.WithToolSearch(slices.Concat(h.state.Favourites(), h.settings.Pinned, c.Pinned)...)
		}
	}
	return all
}

// askTrust asks on a terminal whether servers may run that came with the project.
func (h *house) askTrust(ctx context.Context) error {
	if terminal(h.app.stdin) == nil || h.app.stdout.file == nil {
		return nil
	}
	in := newLines(h.app.stdin)
	for _, u := range h.source.Untrusted() {
		if err := h.app.consider(ctx, h.source, u, in, false); err != nil {
			return err
		}
	}
	return nil
}

// served is what a client on stdio gets.
func (h *house) served(f upFlags) mcp.Handler { return mcp.Chain(h.offered(f), h.middleware()...) }

// middleware is what stands before the gateway: what is recorded has been let in.
func (h *house) middleware() []mcp.Middleware {
	limit := gateway.Limits{Rate: h.settings.Rate, Burst: int(2 * h.settings.Rate), Concurrent: maxConcurrent}
	all := []mcp.Middleware{gateway.Limit(limit)}
	if h.log != nil {
		all = append(all, gateway.Audit(h.log, gateway.AuditOptions{
			Arguments: h.settings.AuditArguments, Mask: h.mask, OnError: func(err error) { h.app.warn("the audit log: %v", err) },
		}))
	}
	return all
}

// audit opens the audit log, if there is to be one.
func (h *house) audit() (err error) {
	if h.settings.Audit == "" {
		return nil
	}
	if err = os.MkdirAll(filepath.Dir(h.settings.Audit), 0o700); err == nil {
		h.log, err = os.OpenFile(h.settings.Audit, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return fmt.Errorf("the audit log %s cannot be written: %w", h.settings.Audit, err)
	}
	return nil
}

// mask hides the secrets of all servers.
func (h *house) mask(text string) string {
	for _, u := range h.hub.Upstreams() {
		if d := u.Definition(); d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}

// maxConcurrent bounds the requests of a client that are worked on at the same time.
const maxConcurrent = 1000

// files are those that were read.
func (h *house) files() (found []string) {
	for _, f := range h.source.Set().Files {
		if !f.Missing {
			found = append(found, f.Path)
		}
	}
	return found
}

// Status implements [control.Controller].
func (h *house) Status() control.Status {
	here, _ := os.Getwd()
	s := control.Status{PID: os.Getpid(), Folder: here, Version: version(), Started: h.began, Files: h.files(), Servers: control.DescribeAll(h.hub)}
	s.Ending = h.ending.Load()
	for _, p := range h.source.Set().Problems {
		if p.Server == "" && p.Severity == config.Error {
			s.Problems = append(s.Problems, p.Text())
		}
	}
	if w := h.web.Load(); w != nil {
		s.Gateway, s.Page = w.url+"/mcp", w.url+"/"
	}
	return s
}

// Reload implements [control.Controller].
func (h *house) Reload(context.Context) error {
	set := h.source.Load("it was asked for")
	var errs []error
	for _, p := range set.Problems {
		if p.Server == "" && p.Severity == config.Error {
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

// Yield implements [control.Controller]: what serves a client over stdio alone makes room for one that is there for all.
func (h *house) Yield(context.Context) error {
	if !h.alone {
		return errors.New("it serves others")
	}
	h.yield.Do(func() { close(h.yielded) })
	return nil
}

// Do implements [control.Controller].
func (h *house) Do(_ context.Context, name, verb string) error {
	u := h.hub.Upstream(name)
	if u == nil {
		return fmt.Errorf("%w: %s%s", control.ErrNoServer, name, suggestion(name, h.names()))
	}
	switch verb {
	case "enable":
		return h.source.Enable(name, true)
	case "disable":
		return h.source.Enable(name, false)
	case "trust":
		return h.source.Trust(name, nil)
	case "restart":
		if s := u.State(); s.Status.Held() {
			return fmt.Errorf("%s is %s: %s", name, s.Status, s.Cause)
		}
		before := u.Definition().Fingerprint
		h.source.Load("it was asked for") // what its variables and files say may have changed
		if u.Definition().Fingerprint == before {
			u.Restart("it was asked for")
		}
		return nil
	}
	return fmt.Errorf("a server cannot be told to %q: there are enable, disable, restart and trust", verb)
}

func (h *house) names() (names []string) {
	for _, u := range h.hub.Upstreams() {
		names = append(names, u.Name())
	}
	return names
}
