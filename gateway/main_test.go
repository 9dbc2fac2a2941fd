package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"go.uber.org/goleak"
)

// TestMain makes the test binary an upstream too: as a child process it plays the role that its
// first argument names.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && roles[os.Args[1]] != nil {
		roles[os.Args[1]]()
		return
	}
	goleak.VerifyTestMain(m)
}

// roles are the parts that child processes play.
var roles = map[string]func(){
	"upstream": func() { _ = stdio.Serve(context.Background(), newUpstream()) },
	"silent":   func() { _, _ = io.Copy(io.Discard, os.Stdin) },
	"exit":     func() { fmt.Fprintln(os.Stderr, "no such database"); os.Exit(3) },
}

// child returns a command that runs a role.
func child(role string) stdio.Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return stdio.Command{Path: self, Args: []string{role}, Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}} // else each exit takes a second
}

// quiet drops log messages that the tests provoke.
var quiet = slog.New(slog.DiscardHandler)

// hubOf returns a hub with its servers starting.
func hubOf(t testing.TB, o hub.Options, definitions ...hub.Definition) *hub.Hub {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	h := hub.New(&o)
	t.Cleanup(func() { h.Close() })
	h.Apply(definitions, "the test begins")
	return h
}

// settle waits until no upstream is starting.
func settle(t testing.TB, h *hub.Hub) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if h.Settle(ctx) {
		return
	}
	for _, u := range h.Upstreams() {
		t.Log(u.Name(), u.State().Status, u.State().Err)
	}
	t.Fatal("not settled")
}

func gatewayOf(t testing.TB, h *hub.Hub, o gateway.Options) *gateway.Gateway {
	t.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	g := gateway.New(h, &o)
	t.Cleanup(func() { g.Close() })
	return g
}

// over returns a gateway over upstreams that have settled.
func over(t testing.TB, definitions ...hub.Definition) (*gateway.Gateway, *hub.Hub) {
	t.Helper()
	h := hubOf(t, hub.Options{}, definitions...)
	settle(t, h)
	return gatewayOf(t, h, gateway.Options{}), h
}

func dial(t testing.TB, to any, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), to, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// until polls until a condition is true. It fails the test after [polltest.Limit].
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	polltest.Until(t, what, done)
}
