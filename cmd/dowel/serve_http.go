package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// patience is how long calls in flight may take when the server is told to end.
const patience = 5 * time.Second

// serveHTTP serves at an address until ctx ends.
func (a *app) serveHTTP(ctx context.Context, name string, h mcp.Handler, address string) error {
	listener, err := net.Listen("tcp", local(address))
	if err != nil {
		return fmt.Errorf("--http %s: %w", address, err)
	}
	shared := transport.ServerOptions{Logger: slog.New(a.notices())}
	now, old := streamable.Handler(h, streamable.Options{ServerOptions: shared}), sse.Handler(h, sse.Options{ServerOptions: shared})
	mux := http.NewServeMux()
	mux.Handle("/mcp", now)
	mux.Handle("/sse", old)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	at := "http://" + listener.Addr().String()
	if a.json {
		encodeLine(a.stdout, map[string]any{"server": name, "url": at + "/mcp", "sse": at + "/sse"})
	} else {
		fmt.Fprintf(a.stderr, "Serving %s at %s/mcp, and for clients of 2024 at %s/sse. Ctrl-C ends it.\n", name, at, at)
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return errors.Join(now.Shutdown(end), old.Shutdown(end), web.Shutdown(end))
}

// local makes an address of a port, or of one without a host, that of this machine alone.
func local(address string) string {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		return "127.0.0.1" + address
	}
	return address
}
