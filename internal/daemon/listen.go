package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/transport/streamable"
)

// ShutdownTimeout is how long calls in flight may take when the server is told to end.
const ShutdownTimeout = 5 * time.Second

// ListenOptions say at which address a server is reached, and which hosts and origins may reach it.
type ListenOptions struct {
	Address        string
	Hosts, Origins []string
}

func (f *ListenOptions) Guard() streamable.Guard {
	g := streamable.Guard{}
	if len(f.Hosts) > 0 {
		g.Hosts = append(g.Hosts, f.Hosts...)
		g.Hosts = append(g.Hosts, "localhost", "127.0.0.1", "::1")
	}
	if len(f.Origins) > 0 {
		g.AllowOrigin = func(origin string) bool { return slices.Contains(f.Origins, origin) || slices.Contains(f.Origins, "*") }
	}
	return g
}

// Shutdown runs all functions at the same time, so that each refuses new work at once. A passed deadline is no
// error: the caller knows of it by ctx.
func Shutdown(ctx context.Context, all ...func(context.Context) error) error {
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

// LocalAddress completes an address: a port alone, or one without a host, is on this machine only.
func LocalAddress(address string) string {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	if strings.HasPrefix(address, ":") {
		return "127.0.0.1" + address
	}
	return address
}

// DefaultAddress is where the gateway is.
const DefaultAddress = "127.0.0.1:7800"
