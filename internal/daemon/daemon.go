// Package daemon is the running dowel: the hub with the servers of the configuration, the gateway
// in front of them, the control socket for the user's other processes, and the watcher that keeps
// the servers in step with the files.
//
// One user has one running daemon. [Start] makes this process the daemon, and asks one that serves
// a single client over stdio to make room. [Join] returns a [Proxy], a gateway over the running
// daemon wherever it runs: if none runs, or the one that ran has ended, this process becomes the
// daemon. The clients of a proxy notice nothing of such a change.
//
// The package knows no command line: [Options] carries what the user chose, and the functions that
// tell the user something.
package daemon

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
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/config/watch"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/suggest"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Options say how a daemon runs and how it tells the user of events. All functions but Reported and AskTrust are
// required.
type Options struct {
	ListenOptions
	// Stdio makes the daemon serve only the client that started this process, unless Address is set.
	Stdio bool
	// ToolSearch offers a search of tools instead of all tools.
	ToolSearch bool
	// ConfigGiven says that the command line chose files or a project. A proxy warns that they have no effect
	// if another daemon runs already.
	ConfigGiven bool

	// Socket is the path at which other processes of the user reach the daemon.
	Socket string
	// Config and State return the places of the configuration and the choices of the user. They are called at each start.
	Config func() (config.Options, error)
	State  func() (*state.State, error)

	Logger *slog.Logger
	// Warn tells the user of a problem, Notice of a fact that only a person at a terminal needs.
	Warn   func(format string, args ...any)
	Notice func(text string)
	// Reported reports whether the user knows a problem of the configuration already; nil means never.
	Reported func(config.Problem) bool
	// AskTrust asks the user whether a server of a project may run. If it is nil, such servers wait.
	AskTrust func(ctx context.Context, source *configured.Source, u configured.Untrusted) error
}

// Daemon is a running dowel: the servers, the gateway in front of them, and what keeps both in step with the files.
type Daemon struct {
	options  Options
	Hub      *hub.Hub
	source   *configured.Source
	gateway  *gateway.Gateway
	state    *state.State
	settings config.Gateway
	Web      atomic.Pointer[web]
	private  bool // serves only the client that started it
	ending   atomic.Bool
	started  time.Time

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
	ends []func(context.Context) error // of the ways in
	log  *os.File                      // of the audit

	place   *control.Place
	yield   sync.Once
	yielded chan struct{} // closed when another dowel is to take the place of this one
}

// newDaemon builds a daemon; load starts its servers.
func newDaemon(o Options) (*Daemon, error) {
	where, err := o.Config()
	if err != nil {
		return nil, err
	}
	store, err := o.State()
	if err != nil {
		return nil, err
	}
	h := &Daemon{options: o, state: store, started: time.Now(), yielded: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	info := mcp.Implementation{Name: "dowel", Title: "dowel", Version: version.Number()}
	h.Hub = hub.New(&hub.Options{Info: info, Cache: newCatalogCache(), Watch: configured.WatchFiles, Logger: o.Logger})
	h.gateway = gateway.New(h.Hub, &gateway.Options{Info: info, Logger: o.Logger})
	h.source = configured.New(h.Hub, configured.Options{Config: where, Choices: store, Fallback: BuiltInServers(), Logger: o.Logger})
	return h, nil
}

// start starts a house at a place: its servers, and what lets others in. Where there is an error, the place is released.
func start(ctx context.Context, place *control.Place, o Options, cause string) (_ *Daemon, err error) {
	h, err := newDaemon(o)
	if err != nil {
		_ = place.Release()
		return nil, err
	}
	h.place, h.private = place, o.Stdio && o.Address == ""
	defer func() {
		if err != nil {
			h.Stop(context.Background())
		}
	}()
	if err := h.load(cause); err != nil {
		return nil, err
	}
	h.ends = append(h.ends, h.listen(place))
	if !o.Stdio {
		if err := h.askTrust(ctx); err != nil {
			return nil, err
		}
	}
	if !o.Stdio || o.Address != "" {
		front, err := h.open()
		if err != nil {
			return nil, err
		}
		h.ends = append(h.ends, front.shutdown)
	}
	return h, nil
}

// Start makes this process the running daemon and starts its servers. It waits for a daemon that is ending,
// and asks one that serves a single client over stdio to make room; it fails with [control.ErrRunning] if
// another one stays.
func Start(ctx context.Context, o Options) (*Daemon, error) {
	place, err := acquirePlace(ctx, o)
	if err != nil {
		return nil, err
	}
	return start(ctx, place, o, "dowel begins")
}

// acquirePlace binds the control socket. It waits up to four times [ShutdownTimeout] for a daemon that is ending
// or that serves a single client, which it asks to make room.
func acquirePlace(ctx context.Context, o Options) (*control.Place, error) {
	other := control.NewClient(o.Socket)
	for end, told := time.Now().Add(4*ShutdownTimeout), false; ; told = true {
		place, err := control.Listen(o.Socket)
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
			o.Notice("Waiting for the dowel that is running to make room.")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stop refuses new clients, waits up to [ShutdownTimeout] for calls in flight, ends the servers, and releases
// the control socket.
func (h *Daemon) Stop(ctx context.Context) {
	h.stopServing(ctx)
	h.release()
}

// stopServing refuses new clients and waits up to [ShutdownTimeout] for calls in flight. The servers keep running.
func (h *Daemon) stopServing(ctx context.Context) {
	h.ending.Store(true)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
	defer cancel()
	if err := Shutdown(end, h.ends...); err != nil {
		h.options.Warn("%v", err)
	}
	h.ends = nil
}

// load reads the files, starts the servers, and keeps both in step from then on.
func (h *Daemon) load(cause string) error {
	set := h.source.Load(cause)
	h.reportProblems(set)
	settings, err := GatewaySettings(set)
	if err != nil {
		return err
	}
	h.settings = settings
	h.work.Go(h.follow)
	return h.openAudit()
}

// GatewaySettings resolves the settings of the gateway. It fails if they are not certain, since a gateway might
// then be opened without its token.
func GatewaySettings(set *config.Set) (config.Gateway, error) {
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

// reportProblems warns of problems of the files. The problem of one server is in its row of the table instead.
func (h *Daemon) reportProblems(set *config.Set) {
	for _, p := range set.Problems {
		if told := h.options.Reported != nil && h.options.Reported(p); !told && (p.Server == "" || p.Severity == config.Warning) {
			h.options.Warn("%s", p.Text())
		}
	}
	for _, shadow := range set.Shadowed {
		h.options.Notice(fmt.Sprintf("%s of %s is shadowed by that of %s, and is not started", shadow.Name, shadow.Path, shadow.By.Path))
	}
}

// follow reads the files again when they change, until the daemon ends.
func (h *Daemon) follow() {
	for set := range h.source.Changes(h.life, watch.Options{Warn: func(err error) { h.options.Warn("%v", err) }}) {
		h.reportProblems(set)
		if now, err := GatewaySettings(set); err == nil && !now.Same(h.settings) {
			h.options.Warn("what the files say of the gateway counts when dowel is started again")
		}
	}
}

func (h *Daemon) release() {
	h.end()
	h.work.Wait()
	h.gateway.Close()
	h.Hub.Close()
	if h.log != nil {
		h.log.Close()
	}
	if err := h.place.Release(); err != nil {
		h.options.Warn("%v", err)
	}
}

// serverOptions returns the options that all transports of the gateway share.
func (h *Daemon) serverOptions() transport.ServerOptions {
	return transport.ServerOptions{Logger: h.options.Logger}
}

// exposed returns the gateway that clients see: with all tools, or with a search of tools.
func (h *Daemon) exposed() *gateway.Gateway {
	if h.options.ToolSearch || h.settings.ToolSearch {
		return h.gateway.WithToolSearch(append(h.state.Favourites(), h.settings.Pinned...)...)
	}
	return h.gateway
}

// clients returns the gateways of the clients that the configuration names.
func (h *Daemon) clients() map[string]*gateway.Gateway {
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
func (h *Daemon) askTrust(ctx context.Context) error {
	if h.options.AskTrust == nil {
		return nil
	}
	for _, u := range h.source.Untrusted() {
		if err := h.options.AskTrust(ctx, h.source, u); err != nil {
			return err
		}
	}
	return nil
}

// handler returns the handler of a client over stdio.
func (h *Daemon) handler() mcp.Handler { return mcp.Chain(h.exposed(), h.middleware()...) }

// middleware returns the handlers in front of the gateway: the rate limit first, so that the audit log records
// only requests that were let in.
func (h *Daemon) middleware() []mcp.Middleware {
	limit := gateway.Limits{Rate: h.settings.Rate, Burst: int(2 * h.settings.Rate), Concurrent: maxConcurrent}
	all := []mcp.Middleware{gateway.Limit(limit)}
	if h.log != nil {
		all = append(all, gateway.Audit(h.log, gateway.AuditOptions{
			Arguments: h.settings.AuditArguments, Mask: h.mask, OnError: func(err error) { h.options.Warn("the audit log: %v", err) },
		}))
	}
	return all
}

// openAudit opens the audit log if the configuration wants one.
func (h *Daemon) openAudit() (err error) {
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
func (h *Daemon) mask(text string) string {
	for _, u := range h.Hub.Upstreams() {
		if d := u.Definition(); d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}

// maxConcurrent bounds the requests of a client that are worked on at the same time.
const maxConcurrent = 1000

// Files returns the paths of the configuration files that were read.
func (h *Daemon) Files() (found []string) {
	for _, f := range h.source.Set().Files {
		if !f.Missing {
			found = append(found, f.Path)
		}
	}
	return found
}

// Status implements [control.Controller].
func (h *Daemon) Status() control.Status {
	here, _ := os.Getwd()
	s := control.Status{PID: os.Getpid(), Folder: here, Version: version.Number(), Started: h.started, Files: h.Files(), Servers: control.DescribeAll(h.Hub)}
	s.Ending = h.ending.Load()
	for _, p := range h.source.Set().Problems {
		if p.Server == "" && p.Severity == config.Error {
			s.Problems = append(s.Problems, p.Text())
		}
	}
	if w := h.Web.Load(); w != nil {
		s.Gateway, s.Page = w.Url+"/mcp", w.Url+"/"
	}
	return s
}

// Reload implements [control.Controller].
func (h *Daemon) Reload(context.Context) error {
	set := h.source.Load("it was asked for")
	var errs []error
	for _, p := range set.Problems {
		if p.Server == "" && p.Severity == config.Error {
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

// Yield implements [control.Controller]: a daemon that serves a single client over stdio makes room for one that
// serves all.
func (h *Daemon) Yield(context.Context) error {
	if !h.private {
		return errors.New("it serves others")
	}
	h.yield.Do(func() { close(h.yielded) })
	return nil
}

// Do implements [control.Controller].
func (h *Daemon) Do(_ context.Context, name, verb string) error {
	u := h.Hub.Upstream(name)
	if u == nil {
		return fmt.Errorf("%w: %s%s", control.ErrNoServer, name, suggest.Hint(name, h.names()))
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

func (h *Daemon) names() (names []string) {
	for _, u := range h.Hub.Upstreams() {
		names = append(names, u.Name())
	}
	return names
}
