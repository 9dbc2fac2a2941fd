package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/dowel-mcp/dowel/internal/cli/factory"
	"github.com/dowel-mcp/dowel/internal/daemon"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// serveHTTP serves at an address until ctx ends.
func serveHTTP(ctx context.Context, f *factory.Factory, name string, h mcp.Handler, opts daemon.ListenOptions) error {
	listener, err := net.Listen("tcp", daemon.LocalAddress(opts.Address))
	if err != nil {
		return fmt.Errorf("--http %s: %w", opts.Address, err)
	}
	shared := transport.ServerOptions{Logger: slog.New(f.LogHandler())}
	now := streamable.Handler(h, &streamable.Options{ServerOptions: shared, Guard: opts.Guard()})
	old := sse.Handler(h, &sse.Options{ServerOptions: shared, Guard: opts.Guard()})
	mux := http.NewServeMux()
	mux.Handle("/mcp", now)
	mux.Handle("/sse", old)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	at := "http://" + listener.Addr().String()
	if f.JSON {
		factory.WriteJSONLine(f.Stdout, map[string]any{"server": name, "url": at + "/mcp", "sse": at + "/sse"})
	} else {
		fmt.Fprintf(f.Stderr, "Serving %s at %s/mcp, and for clients of 2024 at %s/sse. Ctrl-C ends it.\n", name, at, at)
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), daemon.ShutdownTimeout)
	defer cancel()
	err = daemon.Shutdown(end, now.Shutdown, old.Shutdown)
	if end.Err() != nil {
		f.Warn("calls were not done within %v, and were cut off", daemon.ShutdownTimeout)
	}
	return errors.Join(err, daemon.Shutdown(end, web.Shutdown), web.Close())
}
