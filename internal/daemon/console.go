package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/console"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/version"
	"github.com/dowel-mcp/dowel/mcp"
)

// ConsoleMode says how far the console reaches.
type ConsoleMode string

// The modes of the console. The zero value means ConsoleOn, but not at an address that other
// machines can reach.
const (
	ConsoleOn   ConsoleMode = "on"
	ConsoleRead ConsoleMode = "read" // it changes nothing
	ConsoleOff  ConsoleMode = "off"
)

// ConsoleModes are the values that a user may choose.
var ConsoleModes = []string{string(ConsoleOn), string(ConsoleRead), string(ConsoleOff)}

// consoleServer serves the console of a daemon: at the address of the gateway, or at one of its
// own.
type consoleServer struct {
	*console.Console
	life context.Context
	end  context.CancelFunc // of its streams

	mu   sync.Mutex
	own  *http.Server // nil unless it has an address of its own
	base string       // the address for a browser, or "" without one
}

// newConsole returns the console of the daemon, or nil if it is off.
func (d *Daemon) newConsole() *consoleServer {
	if d.options.Console == ConsoleOff {
		return nil
	}
	c := &consoleServer{}
	c.life, c.end = context.WithCancel(context.Background())
	c.Console = console.New(console.Options{
		API:      control.ConsoleAPI(d.running(c.life)),
		ReadOnly: d.options.Console == ConsoleRead, Hosts: slices.Concat(d.options.Hosts, d.settings.Hosts), Folder: os.Getenv("DOWEL_CONSOLE_DIR"),
	})
	return c
}

// running returns the daemon for its API. Streams end with life.
func (d *Daemon) running(life context.Context) control.Running {
	return control.Running{Life: life, Controller: d, Hub: d.Hub, Recorder: d.recorder, Calls: d.calls, Chats: d.chats, Audit: d.trail, Config: d.source.Set, Drafts: d.drafts, Places: d.places, Moments: d.moments}
}

// dialGateway connects the calls that the user makes in the console. They are recorded, limited and
// audited like calls of other clients.
func (d *Daemon) dialGateway(ctx context.Context, answers client.Answers, revision mcp.Revision) (*client.Client, error) {
	return client.Dial(d.recordClient(ctx, nil), mcp.Chain(d.gateway, d.middleware(d.limits())...), &client.Options{
		Info: mcp.Implementation{Name: "console", Title: "dowel console", Version: version.Number()}, Answers: answers, NoOutputCheck: true, NoCache: true, Logger: d.options.Logger,
		Wire: client.Wire{Revision: revision},
	})
}

// consoleIsAt reports whether the console is served at the address of the gateway: unless other
// machines can reach it and the user did not ask for that.
func (d *Daemon) consoleIsAt(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return d.console != nil && (d.options.Console != "" || ok && tcp.IP.IsLoopback())
}

// serveConsole passes requests for the console to it, and all others to next. It sends a browser
// from / to the console.
func (c *consoleServer) serveConsole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == console.DefaultPrefix || strings.HasPrefix(r.URL.Path, console.DefaultPrefix+"/") {
			c.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// OpenConsole implements [control.Controller]. Without an address for the console it opens one.
func (d *Daemon) OpenConsole(context.Context) (control.ConsoleLogin, error) {
	if d.console == nil {
		return control.ConsoleLogin{}, errors.New("the running dowel has no console: start it with --console=on")
	}
	base, err := d.console.address(d.options.Logger)
	if err != nil {
		return control.ConsoleLogin{}, fmt.Errorf("the console has no address: %w", err)
	}
	return control.ConsoleLogin{URL: d.console.LoginURL(base), ReadOnly: d.options.Console == ConsoleRead, Version: version.Number()}, nil
}

// address returns the address of the console for a browser. Without one it opens an address for the
// console alone.
func (c *consoleServer) address(logger *slog.Logger) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base != "" {
		return c.base, nil
	}
	if c.life.Err() != nil {
		return "", errors.New("dowel is ending")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	home := http.RedirectHandler(console.DefaultPrefix+"/", http.StatusFound)
	c.own = &http.Server{Handler: c.serveConsole(home), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug)}
	c.base = "http://" + listener.Addr().String()
	go func() { _ = c.own.Serve(listener) }() // returns when shutdown closes it
	return c.base, nil
}

// setAddress makes the console known at an address that another server serves.
func (c *consoleServer) setAddress(base string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
}

// shutdown ends the streams and the address of the console.
func (c *consoleServer) shutdown(ctx context.Context) error {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own == nil {
		return nil
	}
	return errors.Join(Shutdown(ctx, c.own.Shutdown), c.own.Close())
}
