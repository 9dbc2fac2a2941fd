package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
)

// daemonOptions say how a daemon runs, and whom it tells of what happens.
type daemonOptions struct {
	webFlags
	// Stdio has the daemon serve the client that started this process, and nobody else unless there is an Address.
	stdio bool
	// ToolSearch offers a search of tools in place of all tools.
	toolSearch bool
	// Chosen says that the command line chose files or a project; a proxy warns that they do not count where another daemon runs.
	chosen bool

	// Socket is where other processes of the user reach the daemon.
	socket string
	// Config and State return the places of the configuration and the choices of the user. They are called at each start.
	config func() (config.Options, error)
	state  func() (*state.State, error)

	logger *slog.Logger
	// Warn tells the user of a trouble, and Notice of a fact that only a person needs.
	warn   func(format string, args ...any)
	notice func(text string)
	// Told reports whether the user has been told of a problem of the configuration already; nil: of none.
	told func(config.Problem) bool
	// Trust asks the user whether a server of a project may run; nil: nobody is asked.
	trust func(ctx context.Context, source *configured.Source, u configured.Untrusted) error
}

// house is a running dowel: the servers, the gateway in front of them, and what keeps both in step with the files.
type house struct {
	options  daemonOptions
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
func newHouse(o daemonOptions) (*house, error) {
	where, err := o.config()
	if err != nil {
		return nil, err
	}
	store, err := o.state()
	if err != nil {
		return nil, err
	}
	h := &house{options: o, state: store, began: time.Now(), yielded: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	info := mcp.Implementation{Name: "dowel", Title: "dowel", Version: version()}
	h.hub = hub.New(&hub.Options{Info: info, Cache: newCatalogCache(), Watch: configured.WatchFiles, Logger: o.logger})
	h.gateway = gateway.New(h.hub, &gateway.Options{Info: info, Logger: o.logger})
	h.source = configured.New(h.hub, configured.Options{Config: where, Choices: store, Fallback: builtIn(), Logger: o.logger})
	return h, nil
}

// moveIn starts a house at a place: its servers, and what lets others in. Where there is an error, the place is released.
func moveIn(ctx context.Context, place *control.Place, o daemonOptions, cause string) (_ *house, err error) {
	h, err := newHouse(o)
	if err != nil {
		place.Release()
		return nil, err
	}
	h.place, h.alone = place, o.stdio && o.address == ""
	defer func() {
		if err != nil {
			h.moveOut(context.Background())
		}
	}()
	if err := h.load(cause); err != nil {
		return nil, err
	}
	h.ends = append(h.ends, h.listen(place))
	if !o.stdio {
		if err := h.askTrust(ctx); err != nil {
			return nil, err
		}
	}
	if !o.stdio || o.address != "" {
		front, err := h.open()
		if err != nil {
			return nil, err
		}
		h.ends = append(h.ends, front.shutdown)
	}
	return h, nil
}

// occupy makes this process the running dowel: it takes the place, and starts.
func occupy(ctx context.Context, o daemonOptions) (*house, error) {
	place, err := takePlace(ctx, o)
	if err != nil {
		return nil, err
	}
	return moveIn(ctx, place, o, "dowel begins")
}

// takePlace makes this process the dowel that is running. One that is ending is waited for, and one that serves the client
// that has started it, and nobody else, makes room and goes on through this one.
func takePlace(ctx context.Context, o daemonOptions) (*control.Place, error) {
	other := control.NewClient(o.socket)
	for end, told := time.Now().Add(4*patience), false; ; told = true {
		place, err := control.Listen(o.socket)
		switch {
		case err == nil:
			return place, nil
		case !errors.Is(err, control.ErrRunning):
			return nil, fmt.Errorf("other programs could not be let in: %w", err)
		}
		if s, e := other.Status(ctx); e == nil && s.Gateway != "" && !s.Ending || ctx.Err() != nil || time.Now().After(end) {
			return nil, fmt.Errorf("%w: see dowel status", err)
		}
		_ = other.Yield(ctx) // it may be on its way out already
		if !told {
			o.notice("Waiting for the dowel that is running to make room.")
		}
		time.Sleep(20 * time.Millisecond)
	}
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
		h.options.warn("%v", err)
	}
	h.ends = nil
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
		if told := h.options.told != nil && h.options.told(p); !told && (p.Server == "" || p.Severity == config.Warning) {
			h.options.warn("%s", p.Text())
		}
	}
	for _, shadow := range set.Shadowed {
		h.options.notice(fmt.Sprintf("%s of %s is shadowed by that of %s, and is not started", shadow.Name, shadow.Path, shadow.By.Path))
	}
}

// follow reads the files again when they change.
func (h *house) follow() {
	for set := range h.source.Changes(h.life, watch.Options{Warn: func(err error) { h.options.warn("%v", err) }}) {
		h.complain(set)
		if now, err := gatewayOf(set); err == nil && !now.Same(h.settings) {
			h.options.warn("what the files say of the gateway counts when dowel is started again")
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
		h.options.warn("%v", err)
	}
}

// serverOptions are those of every way into the gateway.
func (h *house) serverOptions() transport.ServerOptions {
	return transport.ServerOptions{Logger: h.options.logger}
}

// offered is the gateway, with all tools or a search of them.
func (h *house) offered() *gateway.Gateway {
	if h.options.toolSearch || h.settings.ToolSearch {
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

// askTrust asks whether servers may run that came with the project.
func (h *house) askTrust(ctx context.Context) error {
	if h.options.trust == nil {
		return nil
	}
	for _, u := range h.source.Untrusted() {
		if err := h.options.trust(ctx, h.source, u); err != nil {
			return err
		}
	}
	return nil
}

// served is what a client on stdio gets.
func (h *house) served() mcp.Handler { return mcp.Chain(h.offered(), h.middleware()...) }

// middleware is what stands before the gateway: what is recorded has been let in.
func (h *house) middleware() []mcp.Middleware {
	limit := gateway.Limits{Rate: h.settings.Rate, Burst: int(2 * h.settings.Rate), Concurrent: maxConcurrent}
	all := []mcp.Middleware{gateway.Limit(limit)}
	if h.log != nil {
		all = append(all, gateway.Audit(h.log, gateway.AuditOptions{
			Arguments: h.settings.AuditArguments, Mask: h.mask, OnError: func(err error) { h.options.warn("the audit log: %v", err) },
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
