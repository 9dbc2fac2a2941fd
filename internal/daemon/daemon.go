// Package daemon is the running dowel: the hub with the servers of the configuration, the gateway
// in front of them, the control socket for the user's other processes, and the watcher that keeps
// the servers in step with the files.
//
// One user has one running daemon. [Start] makes this process the daemon, and asks one that serves
// a single client over stdio to make room. [Join] returns a [Proxy], a gateway over the running
// daemon wherever it runs: if no daemon runs, or the running one ends, this process becomes the
// daemon. The change is invisible to the clients of a proxy.
//
// The package knows no command line: [Options] carries what the user chose, and the functions that
// tell the user something.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dowel-mcp/dowel/auth"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/audit"
	"github.com/dowel-mcp/dowel/internal/cluster"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/config/draft"
	"github.com/dowel-mcp/dowel/internal/config/state"
	"github.com/dowel-mcp/dowel/internal/config/watch"
	"github.com/dowel-mcp/dowel/internal/configured"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/endedsessions"
	"github.com/dowel-mcp/dowel/internal/journal"
	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/internal/secretmask"
	"github.com/dowel-mcp/dowel/internal/sharedserver"
	"github.com/dowel-mcp/dowel/internal/tasks"
	"github.com/dowel-mcp/dowel/internal/userlogin"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
)

// Options configure a daemon and its messages to the user. Every function except Reported and
// AskTrust is required, and so are Socket and Logger.
type Options struct {
	ListenOptions
	// Stdio makes the daemon serve only the client that started this process, unless Address is
	// set.
	Stdio bool
	// ToolSearch offers a search of tools instead of all tools.
	ToolSearch bool
	// Record is a folder for a recording of all messages, or "".
	Record string
	// Console says what the console may do.
	Console ConsoleMode
	// RenewKey makes a new key for the ids of sessions and tasks. The older keys still open them.
	RenewKey bool
	// Cluster is the URL of the cluster that the daemon joins as a replica, or "".
	// ClusterCredentials is the file with the credentials of the NATS user, or "".
	Cluster, ClusterCredentials string
	// ConfigGiven is true if the command line chose files or a project. If another daemon runs
	// already, a proxy warns that these flags are ignored.
	ConfigGiven bool

	// Socket is the path at which other processes of the user reach the daemon.
	Socket string
	// Sessions is the folder of saved conversations, or "".
	Sessions string
	// Config returns the places of the configuration, State the choices of the user. Both are
	// called at each start.
	Config func() (config.Options, error)
	State  func() (*state.State, error)
	// Logins keeps the logins at servers. A daemon refreshes them, and never starts one. nil logs
	// in nowhere.
	Logins auth.Store

	Logger *slog.Logger
	// Warn reports a problem. Notice reports a fact that only matters to a person at a terminal.
	// Both may be called concurrently.
	Warn   func(format string, args ...any)
	Notice func(text string)
	// Client returns the name of the client of this process at the running daemon, also if that is
	// this process: in the journal, in the audit log, and as the owner of tasks, which a later
	// process with the same name finds again. It is called for each request. nil means a name of
	// this process alone, and none if the daemon is this process.
	Client func() string
	// Reported reports whether a problem of the configuration was shown to the user before. If
	// it is nil, every problem is shown.
	Reported func(config.Problem) bool
	// Agents makes agents for conversations in this process; nil makes none.
	Agents func(*AgentHub) control.ChatHost
	// AskTrust asks the user whether a server of a project may run. If it is nil, these servers
	// wait until the user allows them with dowel trust.
	AskTrust func(ctx context.Context, source *configured.Source, u configured.Untrusted) error
}

// Daemon is a running dowel: the servers, the gateway in front of them, and the watcher that
// keeps the servers in step with the files. [Start] and [Join] create daemons.
type Daemon struct {
	options Options
	places  config.Options // where the configuration is
	// Hub holds the servers. It is closed when the daemon stops.
	Hub       *hub.Hub
	recorder  *journal.Recorder
	recording sync.WaitGroup
	source    *configured.Source
	info      mcp.Implementation
	gateway   *gateway.Gateway     // set when the settings are known
	tasks     tasks.Store          // set with gateway
	keys      *mcp.Keys            // of sessions, tasks and states; set with gateway
	ended     *endedsessions.Store // nil if the keys are not those of the state folder
	console   *consoleServer       // nil if it is off
	calls     *control.Calls       // by the user
	moments   *control.Moments     // earlier states; nil without a console
	chats     *control.Chats       // with the agent
	questions trustQuestions
	state     *state.State
	settings  config.Gateway
	quota     *transport.Quota                // of all clients
	access    *Access                         // set when the settings are known
	cluster   *cluster.Cluster                // nil without one
	shared    *sharedserver.Pool              // servers that run once in the cluster; nil without one
	sharing   atomic.Pointer[gateway.Gateway] // serves the shared servers of this replica; set with gateway
	// Web is the gateway over HTTP, or nil if the daemon does not serve it.
	Web          atomic.Pointer[httpGateway]
	pages        atomic.Pointer[userlogin.Pages] // on which users log in at servers; nil without access tokens
	singleClient bool                            // serves only the client that started this process
	ending       atomic.Bool
	started      time.Time

	ctx        context.Context
	cancel     context.CancelFunc
	background sync.WaitGroup
	shutdowns  []func(context.Context) error // of the control socket and the gateway
	auditFile  *audit.File                   // nil without a file
	auditLog   io.Writer
	trail      *control.AuditTrail // set with auditLog
	drafts     *draft.Desk         // of the configuration files

	place     *control.Place
	yieldOnce sync.Once
	yielded   chan struct{} // closed when another process wants to become the daemon

	stopOnce      sync.Once
	stopRequested chan struct{} // closed when another process asks the daemon to end
}

// newDaemon builds a daemon, which is a replica of cl if that is not nil. Its servers start with
// loadServers.
func newDaemon(o Options, cl *cluster.Cluster) (*Daemon, error) {
	where, err := o.Config()
	if err != nil {
		return nil, err
	}
	store, err := o.State()
	if err != nil {
		return nil, err
	}
	d := &Daemon{options: o, places: where, state: store, cluster: cl, started: time.Now(), yielded: make(chan struct{}), stopRequested: make(chan struct{})}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.info = mcp.Implementation{Name: "dowel", Title: "dowel", Version: version.Number()}
	secrets := secretmask.NewSet()
	d.recorder = journal.New(journal.Options{Secrets: secrets})
	d.Hub = hub.New(&hub.Options{Info: d.info, Cache: newCatalogCache(), Watch: configured.WatchFiles, DialContext: d.recordServer, Logger: o.Logger})
	if o.Sessions != "" {
		d.chats = control.NewChats(o.Sessions)
	}
	d.calls = control.NewCalls(d.ctx, d.Hub, d.dialGateway)
	if o.Console != ConsoleOff {
		d.moments = &control.Moments{}
	}
	d.drafts = &draft.Desk{Files: func() []config.File { return d.source.Set().Files }}
	if err := d.joinSharedServers(); err != nil {
		return nil, err
	}
	d.source = configured.New(d.Hub, configured.Options{Config: where, ShareInCluster: d.shareInCluster(), Choices: d.choices(), Logins: d.logins(), Fallback: BuiltInServers(), Secrets: secrets, Logger: o.Logger})
	return d, nil
}

// startDaemon starts a daemon on a bound control socket: the servers, the control server and the
// gateway. If it fails, it releases the socket.
func startDaemon(ctx context.Context, place *control.Place, o Options, cause string) (_ *Daemon, err error) {
	cl, err := joinCluster(ctx, o)
	if err != nil {
		_ = place.Release()
		return nil, err
	}
	d, err := newDaemon(o, cl)
	if err != nil {
		if cl != nil {
			cl.Close()
		}
		_ = place.Release()
		return nil, err
	}
	d.place, d.singleClient = place, o.Stdio && o.Address == ""
	defer func() {
		if err != nil {
			d.Stop(context.Background())
		}
	}()
	if err := d.startRecording(); err != nil {
		return nil, err
	}
	if err := d.loadServers(cause); err != nil {
		return nil, err
	}
	d.hostAgents()
	if d.console = d.newConsole(); d.console != nil {
		d.shutdowns = append(d.shutdowns, d.console.shutdown)
	}
	d.shutdowns = append(d.shutdowns, d.serveControl(place))
	if !o.Stdio {
		if err := d.askTrust(ctx); err != nil {
			return nil, err
		}
	}
	if !o.Stdio || o.Address != "" {
		web, err := d.serveGateway()
		if err != nil {
			return nil, err
		}
		d.shutdowns = append(d.shutdowns, web.shutdown)
	}
	return d, nil
}

// Start makes this process the running daemon and starts its servers. It waits for a daemon that
// is ending, and asks a daemon that serves a single client over stdio to make room. It fails with
// [control.ErrRunning] if another daemon stays. The caller must call [Daemon.Stop].
func Start(ctx context.Context, o Options) (*Daemon, error) {
	place, err := acquirePlace(ctx, o)
	if err != nil {
		return nil, err
	}
	return startDaemon(ctx, place, o, "dowel begins")
}

// acquirePlace binds the control socket. It asks a daemon that serves a single client to make
// room, and waits up to four times [ShutdownTimeout] until the other daemon has ended.
func acquirePlace(ctx context.Context, o Options) (*control.Place, error) {
	other := control.NewClient(o.Socket)
	for end, noticed := time.Now().Add(4*ShutdownTimeout), false; ; noticed = true {
		place, err := control.Listen(o.Socket)
		switch {
		case err == nil && place.Fallback != nil:
			o.Warn("dowel cannot write to its folder (%v): its socket is in %s, and approvals, trust, tokens and other choices of this run "+
				"are not kept. To keep them, set XDG_STATE_HOME to a folder that dowel can write to", place.Fallback, filepath.Dir(place.Addr().String()))
			return place, nil
		case err == nil:
			return place, nil
		case !errors.Is(err, control.ErrRunning):
			return nil, fmt.Errorf("dowel cannot listen on its control socket: %w: set XDG_RUNTIME_DIR to a folder that dowel can write to", err)
		}
		if s, e := other.Status(ctx); e == nil && s.Gateway != "" && !s.Ending || ctx.Err() != nil || time.Now().After(end) {
			return nil, fmt.Errorf("%w: see dowel status", err)
		}
		_ = other.Yield(ctx) // fails if the other daemon is ending already
		if !noticed {
			o.Notice("Waiting for the dowel that is running to make room.")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Stop refuses new clients, waits up to [ShutdownTimeout] for calls in flight, ends the servers
// and releases the control socket. It does not end early if ctx is canceled. Problems go to
// [Options.Warn].
func (d *Daemon) Stop(ctx context.Context) {
	d.stopServing(ctx)
	d.stopServers()
}

// stopServing refuses new clients and waits up to [ShutdownTimeout] for calls in flight. The
// servers keep running.
func (d *Daemon) stopServing(ctx context.Context) {
	d.ending.Store(true)
	if d.chats != nil {
		d.chats.Close()
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
	defer cancel()
	if err := Shutdown(end, d.shutdowns...); err != nil {
		d.options.Warn("%v", err)
	}
	d.shutdowns = nil
}

// loadServers reads the files, starts the servers and begins to watch the files.
func (d *Daemon) loadServers(cause string) error {
	set := d.source.Load(cause)
	d.reportProblems(set)
	settings, err := GatewaySettings(set)
	if err != nil {
		return err
	}
	d.settings, d.quota = settings, transport.NewQuota(transport.Limits(settings.Limits))
	quota.LogRefusals(d.quota, d.options.Logger)
	d.keys, d.tasks = d.openKeys(), d.openTasks()
	d.gateway = gateway.New(d.Hub, &gateway.Options{Info: d.info, Keys: d.keys, Quota: d.quota, Logger: d.options.Logger,
		TaskAfter: settings.TaskAfter, Tasks: d.tasks,
		Scopes: func(server string) []string { return settings.Auth.Servers[server] }, Login: d.loginUser})
	d.sharing.Store(d.gateway)
	d.access = NewAccess(settings, d.state)
	if err := d.openAudit(); err != nil {
		return err
	}
	d.background.Go(func() { d.followConfig(set) })
	if d.moments != nil {
		d.background.Go(func() { d.moments.Follow(d.ctx, d.running(d.ctx)) })
	}
	d.followReplicas()
	return nil
}

// followConfig applies changes of the files until the daemon ends. last is the configuration so
// far.
func (d *Daemon) followConfig(last *config.Set) {
	for set := range d.source.Changes(d.ctx, watch.Options{Warn: func(err error) { d.options.Warn("%v", err) }}) {
		d.reportProblems(set)
		d.recordConfig(last, set)
		last = set
		if now, err := GatewaySettings(set); err == nil && !now.Same(d.settings) {
			d.applySettings(now)
		}
	}
}

// applySettings takes over changed tokens, so that a removed one is invalid at once. Other settings
// wait for a restart.
func (d *Daemon) applySettings(now config.Gateway) {
	d.access.Update(now)
	if !now.WithoutTokens().Same(d.settings.WithoutTokens()) {
		d.options.Warn("the gateway's settings have changed: restart dowel to apply them")
	}
}

// stopServers ends the servers and everything that runs in the background, and releases the
// control socket.
func (d *Daemon) stopServers() {
	d.cancel()
	d.background.Wait()
	_ = d.calls.Close() // its transport is in memory
	if d.gateway != nil {
		d.gateway.Close()
		if err := d.tasks.Close(); err != nil {
			d.options.Warn("%v", err)
		}
	}
	if d.ended != nil {
		_ = d.ended.Close() // its lines are written at once
	}
	d.Hub.Close()
	if d.shared != nil {
		d.shared.Close()
	}
	d.recorder.Close()
	d.recording.Wait()
	if d.cluster != nil {
		d.cluster.Close()
	}
	if d.auditFile != nil {
		d.auditFile.Close()
	}
	if err := d.place.Release(); err != nil {
		d.options.Warn("%v", err)
	}
}

// serverOptions returns the options that all transports of the gateway share.
func (d *Daemon) serverOptions() transport.ServerOptions {
	return transport.ServerOptions{Quota: d.quota, Logger: d.options.Logger}
}

// clientGateway returns the gateway that clients see. It offers all tools, or a search of tools.
func (d *Daemon) clientGateway() *gateway.Gateway {
	if d.options.ToolSearch || d.settings.ToolSearch {
		return d.searchGateway()
	}
	return d.gateway
}

// searchGateway returns the gateway that offers a search of tools.
func (d *Daemon) searchGateway() *gateway.Gateway {
	return d.gateway.WithToolSearch(append(d.state.Favourites(), d.settings.Pinned...)...)
}

// namedGateways returns the gateway for each client that the configuration names.
func (d *Daemon) namedGateways() map[string]*gateway.Gateway {
	all := map[string]*gateway.Gateway{}
	for name, c := range d.settings.Clients {
		all[name] = d.gateway
		if c.ToolSearch != nil && *c.ToolSearch || c.ToolSearch == nil && d.settings.ToolSearch {
			all[name] = d.gateway.WithToolSearch(slices.Concat(d.state.Favourites(), d.settings.Pinned, c.Pinned)...)
		}
	}
	return all
}

// askTrust asks the user for each untrusted server of a project whether it may run.
func (d *Daemon) askTrust(ctx context.Context) error {
	if d.options.AskTrust == nil {
		return nil
	}
	for _, u := range d.source.Untrusted() {
		if err := d.options.AskTrust(ctx, d.source, u); err != nil {
			return err
		}
	}
	return nil
}

// stdioHandler returns the handler for a client over stdio.
func (d *Daemon) stdioHandler() mcp.Handler {
	return mcp.Chain(d.clientGateway(), d.gatewayMiddleware(d.limits())...)
}

// maskSecrets replaces the secrets of all servers in text, and everything with the form of one.
func (d *Daemon) maskSecrets(text string) string {
	text = secretmask.Text(text)
	for _, u := range d.Hub.Upstreams() {
		if d := u.Definition(); d.Mask != nil {
			text = d.Mask(text)
		}
	}
	return text
}
