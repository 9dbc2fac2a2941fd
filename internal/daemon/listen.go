package daemon

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// ShutdownTimeout is how long calls in flight may take when the server is told to end.
const ShutdownTimeout = 5 * time.Second

// ListenOptions say where and for whom a server is served.
type ListenOptions struct {
	Address        string
	Hosts, Origins []string
}

func (f *ListenOptions) Guard() overhttp.Guard {
	g := overhttp.Guard{}
	if len(f.Hosts) > 0 {
		g.Hosts = append(g.Hosts, f.Hosts...)
		g.Hosts = append(g.Hosts, "localhost", "127.0.0.1", "::1")
	}
	if len(f.Origins) > 0 {
		g.AllowOrigin = func(origin string) bool { return slices.Contains(f.Origins, origin) || slices.Contains(f.Origins, "*") }
	}
	return g
}

// Shutdown runs all at the same time: each refuses new work at once. That the time was up is no error: it was said.
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

// LocalAddress makes an address of a port, or of one without a host, that of this machine alone.
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
