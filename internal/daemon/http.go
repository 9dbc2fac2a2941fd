package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/internal/console"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/userlogin"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// httpGateway serves the gateway over HTTP at one address.
type httpGateway struct {
	handler *gateway.HTTPHandler
	pages   *userlogin.Pages // nil without access tokens
	server  *http.Server
	served  chan error
	Url     string // with the address for a browser and without a path
	Open    bool   // clients need no token
	Auth    bool   // clients send access tokens of an authorization server
}

// serveGateway serves the gateway over HTTP at the configured address.
func (d *Daemon) serveGateway() (*httpGateway, error) {
	listen := d.options.ListenOptions
	address := listen.Address
	if address == "" {
		address = d.settings.Address
	}
	if address == "" {
		address = DefaultAddress
	}
	listener, err := net.Listen("tcp", LocalAddress(address))
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot listen at %s: %w; choose another address with --http", address, ExplainListen(err, LocalAddress(address)))
	}
	if err := errors.Join(d.access.CheckAddress(listener.Addr()), d.checkClusterAccess()); err != nil {
		listener.Close()
		return nil, err
	}
	d.ensureToken()
	shared := d.serverOptions()
	w := &httpGateway{served: make(chan error, 1), Url: "http://" + displayAddress(listener.Addr()), Open: d.access.Open(), Auth: d.access.UsesAuth()}
	listen.Hosts, listen.Origins = slices.Concat(listen.Hosts, d.settings.Hosts), slices.Concat(listen.Origins, d.settings.Origins)
	home := ""
	if d.consoleIsAt(listener.Addr()) {
		home = console.DefaultPrefix + "/"
	}
	options := &gateway.HTTPOptions{Streamable: streamable.Options{ServerOptions: shared}, Middleware: d.gatewayMiddleware(d.sharedLimits()), Clients: d.namedGateways()}
	if d.ended != nil {
		options.Streamable.Sessions.Store = d.ended
	}
	protect := listen.Protect
	if d.access.UsesAuth() {
		guard, at, err := newResourceServer(d.settings.Auth, listener, &listen, d.keys, d.options.Logger)
		if err != nil {
			listener.Close()
			return nil, fmt.Errorf("gateway.auth: %w", err)
		}
		for name := range d.settings.Auth.Servers {
			if d.Hub.Upstream(name) == nil {
				d.options.Warn("gateway.auth.servers names the server %s, which does not exist", name)
			}
		}
		protect = func(next http.Handler) http.Handler {
			return d.servePages(at, guard, listen, guard.Protect(listen.Protect(next)))
		}
	} else {
		options.Authorize, options.Page = d.access.Authorize, control.StatusDocument(d, home)
	}
	options.Guard = listen.Guard()
	w.handler = d.clientGateway().HTTPHandler(options)
	handler := protect(w.handler)
	w.pages = d.pages.Load()
	if home != "" {
		handler = d.console.serveConsole(handler)
		d.console.setAddress(w.Url)
	}
	w.server = &http.Server{Handler: handler, ConnContext: d.recordClient,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(d.options.Logger.Handler(), slog.LevelDebug)}
	go func() { w.served <- w.server.Serve(listener) }()
	d.Web.Store(w)
	return w, nil
}

// displayAddress returns an address that a browser on this machine can open. It replaces the
// unspecified address, which means all interfaces, by the loopback address.
func displayAddress(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// ensureToken makes sure that the gateway's address has a token. It tells the user of an older
// dowel, which asked for no token at a loopback address, that clients need one now.
func (d *Daemon) ensureToken() {
	isUpgrade := d.state.Exists()
	created, err := d.access.EnsureToken()
	switch {
	case err != nil && d.place.Fallback != nil: // the user knows that nothing is kept
	case err != nil:
		d.options.Warn("%v", err)
	case created && isUpgrade:
		d.options.Warn("new in this version: HTTP clients on this machine need the gateway's token, too; %s", clientAdvice)
	}
}

func (w *httpGateway) shutdown(ctx context.Context) error {
	if w.pages != nil {
		w.pages.Close()
	}
	return errors.Join(Shutdown(ctx, w.handler.Shutdown), Shutdown(ctx, w.server.Shutdown), w.server.Close())
}

// closingDelay gives the user's other processes time to learn that this daemon ends.
const closingDelay = 100 * time.Millisecond

// serveControl serves the control API and the gateway to the user's other processes on l. It
// returns a function that stops this, with the calls in flight limited by its context.
func (d *Daemon) serveControl(l net.Listener) func(context.Context) error {
	options := &gateway.HTTPOptions{
		// The user's own processes need this daemon, not the cluster.
		Streamable: streamable.Options{ServerOptions: d.serverOptions(), Principal: control.Principal, Sessions: streamable.SessionOptions{Keys: new(mcp.Keys)}},
		Guard:      streamable.Guard{Off: true}, Middleware: d.gatewayMiddleware(d.limits()),
	}
	all, search := d.gateway.HTTPHandler(options), d.searchGateway().HTTPHandler(options)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(control.HeaderToolSearch) != "" {
			search.ServeHTTP(w, r)
			return
		}
		all.ServeHTTP(w, r)
	})
	events, endEvents := context.WithCancel(context.Background())
	server := &http.Server{Handler: control.Handler(d.running(events), handler), ReadHeaderTimeout: 10 * time.Second, ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
		return d.recordClient(control.ConnContext(ctx, conn), conn)
	}}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // returns at the shutdown
	}()
	return func(ctx context.Context) error {
		// The end of their event streams tells the other processes to send no more calls here.
		// Calls that they send before they notice are still answered.
		endEvents()
		time.Sleep(closingDelay)
		var searching sync.WaitGroup
		searching.Go(func() { _ = Shutdown(ctx, search.Shutdown) })
		err := Shutdown(ctx, all.Shutdown)
		searching.Wait()
		_ = Shutdown(ctx, server.Shutdown)
		server.Close()
		<-served
		return err
	}
}
