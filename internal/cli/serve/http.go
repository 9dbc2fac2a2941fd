package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/exit"
	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/config"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// serveAdvice ends the refusal of a request without a valid token.
const serveAdvice = `send the header that "dowel status --token" prints, or serve with --open`

// serveHTTP serves h at an address until ctx ends, to clients with access tokens if auth is set. It
// then waits for calls in progress, but not longer than [daemon.ShutdownTimeout].
func serveHTTP(ctx context.Context, f *factory.Factory, name string, h mcp.Handler, opts *options, auth config.GatewayAuth) error {
	listener, err := net.Listen("tcp", daemon.LocalAddress(opts.Address))
	if err != nil {
		return fmt.Errorf("--http %s: %w", opts.Address, daemon.ExplainListen(err, daemon.LocalAddress(opts.Address)))
	}
	protect, err := newProtection(f, listener, opts, auth)
	if err != nil {
		listener.Close()
		return err
	}
	shared := transport.ServerOptions{Logger: slog.New(f.LogHandler())}
	current := streamable.Handler(h, &streamable.Options{ServerOptions: shared, Guard: opts.Guard()})
	legacy := sse.Handler(h, &streamable.Options{ServerOptions: shared, Guard: opts.Guard()})
	sockets := websocket.Handler(h, &websocket.Options{ServerOptions: shared, Guard: opts.Guard()})
	mux := http.NewServeMux()
	mux.Handle("/mcp", current)
	mux.Handle("/sse", legacy)
	mux.Handle("/ws", sockets)
	web := &http.Server{Handler: protect(mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	at := "http://" + listener.Addr().String()
	ws := "ws://" + listener.Addr().String() + "/ws"
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, map[string]any{"server": name, "url": at + "/mcp", "sse": at + "/sse", "ws": ws})
	} else {
		text := fmt.Sprintf("Serving %s at %s/mcp, for clients of 2024 at %s/sse, and for clients of WebSocket at %s. Ctrl-C stops it.", name, at, at, ws)
		switch {
		case auth.IsSet():
			text += fmt.Sprintf("\nClients send access tokens of %s.", strings.Join(auth.Issuers, " or "))
		case !opts.open:
			text += fmt.Sprintf("\nClients send your token. To try it: dowel tools --url %s/mcp -H \"$(dowel status --token)\"", at)
		}
		fmt.Fprintln(f.Stderr, f.Stderr.Wrapped(text))
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.ShutdownTimeout)
	defer cancel()
	err = daemon.Shutdown(end, current.Shutdown, legacy.Shutdown, sockets.Shutdown)
	if end.Err() != nil {
		f.Warn("some calls did not finish within %v and were cancelled", daemon.ShutdownTimeout)
	}
	return errors.Join(err, daemon.Shutdown(end, web.Shutdown), web.Close())
}

// newProtection returns the function that puts the checks of requests in front of a handler.
func newProtection(f *factory.Factory, listener net.Listener, opts *options, auth config.GatewayAuth) (func(http.Handler) http.Handler, error) {
	if auth.IsSet() {
		guard, err := daemon.NewResourceServer(auth, listener, &opts.ListenOptions, slog.New(f.LogHandler()))
		if err != nil {
			return nil, exit.Usagef("--auth: %w", err)
		}
		return func(next http.Handler) http.Handler { return guard.Protect(opts.Protect(next)) }, nil
	}
	access, err := f.GatewayAccess(func(g *config.Gateway) { g.Open, g.Auth = opts.open, config.GatewayAuth{} })
	if err != nil {
		return nil, err
	}
	access.Advice = serveAdvice
	return func(next http.Handler) http.Handler { return opts.Protect(access.RequireToken(next)) }, nil
}
