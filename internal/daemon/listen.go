package daemon

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/transport/streamable"
)

// ShutdownTimeout limits the time for calls in flight after a server is told to end.
const ShutdownTimeout = 5 * time.Second

// ListenOptions say where a server listens and which hosts and origins may reach it. The zero
// value means the default address and only this machine.
type ListenOptions struct {
	Address string   // see [LocalAddress]; "" means the default of the caller
	Hosts   []string // further host names under which clients reach the server; * is any
	Origins []string // origins of web pages that may use the server; * is any
}

// Guard returns the check for these hosts and origins. The names of this machine are always
// allowed.
func (o *ListenOptions) Guard() streamable.Guard {
	g := streamable.Guard{}
	if len(o.Hosts) > 0 {
		g.Hosts = append(g.Hosts, o.Hosts...)
		g.Hosts = append(g.Hosts, "localhost", "127.0.0.1", "::1")
	}
	if len(o.Origins) > 0 {
		g.AllowOrigin = o.allowsOrigin
	}
	return g
}

// Shutdown runs all functions at the same time, so that each refuses new work at once. It joins
// their errors but ignores context.DeadlineExceeded, which the caller sees in ctx.
func Shutdown(ctx context.Context, all ...func(context.Context) error) error {
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	for i, shutdown := range all {
		wg.Go(func() {
			if err := shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				failed[i] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// LocalAddress completes an address: a port without a host is at the loopback address.
func LocalAddress(address string) string {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		return "127.0.0.1" + address
	}
	return address
}

// DefaultAddress is the gateway's address if neither flags nor configuration name one.
const DefaultAddress = "127.0.0.1:7800"
