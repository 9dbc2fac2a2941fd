package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// patience is how long calls in flight may take when the server is told to end.
const patience = 5 * time.Second

// webFlags say where and for whom a server is served.
type webFlags struct {
	address        string
	hosts, origins []string
}

func (f *webFlags) guard() streamable.Guard {
	g := streamable.Guard{}
	if len(f.hosts) > 0 {
		g.Hosts = append(g.Hosts, f.hosts...)
		g.Hosts = append(g.Hosts, "localhost", "127.0.0.1", "::1")
	}
	if len(f.origins) > 0 {
		g.AllowOrigin = func(origin string) bool { return slices.Contains(f.origins, origin) || slices.Contains(f.origins, "*") }
	}
	return g
}

// serveHTTP serves at an address until ctx ends.
func (a *app) serveHTTP(ctx context.Context, name string, h mcp.Handler, f webFlags) error {
	listener, err := net.Listen("tcp", local(f.address))
	if err != nil {
		return fmt.Errorf("--http %s: %w", f.address, err)
	}
	shared := transport.ServerOptions{Logger: slog.New(a.notices())}
	now := streamable.Handler(h, &streamable.Options{ServerOptions: shared, Guard: f.guard()})
	old := sse.Handler(h, &sse.Options{ServerOptions: shared, Guard: f.guard()})
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
	err = shutdown(end, now.Shutdown, old.Shutdown)
	if end.Err() != nil {
		a.warn("calls were not done within %v, and were cut off", patience)
	}
	return errors.Join(err, shutdown(end, web.Shutdown), web.Close())
}

// shutdown runs all at the same time: each refuses new work at once. That the time was up is no error: it was said.
func shutdown(ctx context.Context, all ...func(context.Context) error) error {
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	for i, end := range all {
		wg.Go(func() {
			if err := end(ctx); !errors.Is(err, context.DeadlineExceeded) {
				failed[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
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
