// Command server is the server that the official conformance suite tests: the built-in server
// everything, at /mcp, in both eras, with the tools and skills that the scenarios of extensions
// require.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

func main() {
	address := flag.String("http", "127.0.0.1:0", "the `address` to serve at")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := everything.New()
	defer s.Close()
	addTasks(s)
	removeSkills, err := addSkills(s)
	if err != nil {
		return err
	}
	defer removeSkills()
	endpoint := streamable.Handler(s, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", endpoint)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	fmt.Fprintf(os.Stderr, "http://%s/mcp\n", listener.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(endpoint.Shutdown(end), web.Shutdown(end))
	<-served // http.ErrServerClosed
	return err
}
