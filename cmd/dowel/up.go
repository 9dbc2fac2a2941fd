package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/hub/control"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/spf13/cobra"
)

// defaultAddress is where the gateway is.
const defaultAddress = "127.0.0.1:7800"

// upFlags say how the servers are run.
type upFlags struct {
	places
	webFlags
	stdio      bool
	toolSearch bool
}

func (a *app) upCommand() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all your servers, and one MCP endpoint in front of them",
		Long: `Run the servers of your configuration, all at the same time, and keep them running until Ctrl-C. In front of them is one MCP
server, the gateway: all of them together at http://` + defaultAddress + `/mcp, one of them at /mcp/NAME, and for clients of 2024
at /sse. Its page, at http://` + defaultAddress + `/, tells how they are.

The servers are those of dowel.json in the current folder and in your configuration folder, and of .mcp.json in the current
folder; where there are none, the ones that are built into dowel. Servers that come with a project wait until you allow them:
dowel trust. Files are watched: a change restarts exactly the servers that it changes.

With --stdio the gateway is served over standard input and output instead, as the child of a client. Where a dowel is running
already it is that one's, so that all clients share the same servers.

Other machines need the gateway's token, which is made when it is first served to them: dowel status --token.`,
		Example: `  dowel up
  dowel up --http 0.0.0.0:7800 --host dowel.example.com
  claude mcp add dowel -- dowel up --stdio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.began = true
			return a.up(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	f.places.register(cmd)
	flags.StringVar(&f.address, "http", "", "the `address` of the gateway (default "+defaultAddress+")")
	flags.BoolVar(&f.stdio, "stdio", false, "serve the gateway over standard input and output, as the child of a client")
	flags.BoolVar(&f.toolSearch, "tool-search", false, "offer a search of tools in place of all of them, and the pinned ones")
	flags.StringSliceVar(&f.hosts, "host", nil, "a `name` under which the gateway is reached; * is any")
	flags.StringSliceVar(&f.origins, "origin", nil, "an `origin` whose web pages may use the gateway, such as https://app.example.com; * is any")
	return cmd
}

func (a *app) up(ctx context.Context, f upFlags) error {
	control, err := control.Listen(f.socket())
	if errors.Is(err, errRunning) {
		if f.stdio {
			return a.upThrough(ctx, f)
		}
		return fmt.Errorf("%w: see dowel status", err)
	}
	if err != nil {
		return fmt.Errorf("other programs could not be let in: %w", err)
	}
	defer control.Close()
	h, err := a.newHouse(f)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.load("dowel begins"); err != nil {
		return err
	}
	ends := []func(context.Context) error{h.listen(control)}
	if !f.stdio {
		if err := h.askTrust(); err != nil {
			return err
		}
	}
	if !f.stdio || f.address != "" {
		front, err := h.open(f)
		if err != nil {
			return err
		}
		ends = append(ends, front.shutdown)
	}
	if f.stdio {
		err = stdio.Serve(ctx, h.served(f), stdio.Options{ServerOptions: h.serverOptions()})
	} else {
		err = h.show(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if ending := shutdown(end, ends...); ending != nil {
		a.warn("%v", ending)
	}
	return err
}

var errRunning = control.ErrRunning

// upThrough serves the gateway of the dowel that is running.
func (a *app) upThrough(ctx context.Context, f upFlags) error {
	if len(f.files) > 0 || f.project != "" || f.address != "" || f.toolSearch {
		a.warn("a dowel is running already, and its servers are offered as it was told to: the other flags do not count")
	}
	running := control.NewClient(f.socket())
	through := hub.New(hub.Options{Logger: slog.New(a.notices())})
	defer through.Close()
	through.Apply([]hub.Definition{{
		Name: "dowel", Target: streamable.URL{URL: running.Gateway(), Client: running.HTTP()}, Origin: "the dowel that is running",
	}}, "dowel begins")
	g := gateway.New(through)
	defer g.Close()
	return stdio.Serve(ctx, g.Only("dowel"), stdio.Options{ServerOptions: transport.ServerOptions{Logger: slog.New(a.notices())}})
}

// web is the gateway over HTTP, at an address.
type web struct {
	front  *gateway.Front
	server *http.Server
	served chan error
	url    string
}

// open serves the gateway at its address.
func (h *house) open(f upFlags) (*web, error) {
	address := f.address
	if address == "" {
		address = h.settings.Address
	}
	if address == "" {
		address = defaultAddress
	}
	listener, err := net.Listen("tcp", local(address))
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot be at %s: %w; give it another address with --http", address, err)
	}
	token, err := h.token(listener.Addr())
	if err != nil {
		listener.Close()
		return nil, err
	}
	shared := h.serverOptions()
	w := &web{served: make(chan error, 1), url: "http://" + reachable(listener.Addr())}
	f.hosts, f.origins = append(f.hosts, h.settings.Hosts...), append(f.origins, h.settings.Origins...)
	w.front = h.offered(f).Front(gateway.FrontOptions{
		Streamable: streamable.Options{ServerOptions: shared}, SSE: sse.Options{ServerOptions: shared},
		Guard: f.guard(), Token: token, Middleware: h.middleware(), Clients: h.clients(), Page: control.Page(h),
	})
	w.server = &http.Server{Handler: w.front, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(h.app.notices(), slog.LevelDebug)}
	go func() { w.served <- w.server.Serve(listener) }()
	h.web = w
	return w, nil
}

// reachable is an address as one types it: one for all of this machine's is localhost's.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// token returns what clients have to show; empty where only this machine reaches the gateway, and nothing is configured.
func (h *house) token(a net.Addr) (string, error) {
	if h.settings.Token != "" {
		return h.settings.Token, nil
	}
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return "", nil
	}
	token, err := h.state.Token()
	if err != nil {
		return "", fmt.Errorf("the gateway is not served to other machines without a token, and none could be kept: %w", err)
	}
	h.app.notice("Other machines need the gateway's token: dowel status --token")
	return token, nil
}

func (w *web) shutdown(ctx context.Context) error {
	return errors.Join(shutdown(ctx, w.front.Shutdown), shutdown(ctx, w.server.Shutdown), w.server.Close())
}

// listen lets other programs of the user in, and returns what ends that.
func (h *house) listen(l net.Listener) func(context.Context) error {
	inside := h.gateway.Front(gateway.FrontOptions{Guard: transport.Guard{Off: true}, Middleware: h.middleware()})
	server := &http.Server{Handler: control.Handler(h, h.hub, inside), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is shut down
	}()
	return func(ctx context.Context) error {
		err := shutdown(ctx, inside.Shutdown)
		server.Close() // streams of events have no other end
		<-served
		return err
	}
}

// show tells how the servers are, until ctx ends.
func (h *house) show(ctx context.Context) error {
	a := h.app
	events := h.hub.Events(ctx, hub.StateChanged, hub.CatalogChanged)
	if a.json {
		encodeLine(a.stdout, h.Status())
	} else {
		fmt.Fprintln(a.stdout, h.greeting())
	}
	if a.stdout.file != nil && !a.json {
		return h.live(ctx)
	}
	for e := range events {
		switch {
		case a.json:
			encodeLine(a.stdout, control.EventOf(e))
		case e.Kind == hub.StateChanged:
			fmt.Fprintln(a.stdout, h.eventLine(e))
		}
	}
	return nil // it was told to end
}

func (h *house) greeting() string {
	text := "The gateway is at " + h.web.url + "/mcp, its page at " + h.web.url + "/. Ctrl-C ends it."
	if files := h.files(); len(files) > 0 {
		return "Servers of " + strings.Join(files, ", ") + ".\n" + text
	}
	return "There is no dowel.json yet: these are the servers that are built into dowel. Add your own with dowel servers add.\n" + text
}

// eventLine is what happened to a server, for who reads lines.
func (h *house) eventLine(e hub.Event) string {
	text := e.Time.Format(time.TimeOnly) + " " + line(e.Upstream) + ": " + e.State.Status.String()
	if u := h.hub.Upstream(e.Upstream); e.State.Status == hub.Ready && u != nil {
		s := control.Describe(u, h.hub.Catalog())
		return fmt.Sprintf("%s, %s %s, %d tools, %s", text, s.Era, s.Revision, s.Tools, line(s.Cause))
	}
	if d := e.State.Diagnosis; d != nil && e.State.Status != hub.Starting {
		return text + ": " + firstLine(d.Summary) + " → " + line(d.Advice)
	}
	if e.State.Cause != "" {
		text += ": " + line(e.State.Cause)
	}
	return text
}

// live keeps a table on the terminal.
func (h *house) live(ctx context.Context) error {
	a := h.app
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for {
		lines := fitting(a.table(control.DescribeAll(h.hub), a.stdout.columns()-1), a.stdout.rows()-2)
		a.stdout.stand(strings.Join(lines, "\n") + "\n")
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil // it was told to end
		}
	}
}

// fitting returns as many lines as there is room for, and says how many are left out.
func fitting(lines []string, rows int) []string {
	if len(lines) <= rows || rows < 2 {
		return lines
	}
	return append(lines[:rows-1:rows-1], fmt.Sprintf("… and %d lines more: dowel status", len(lines)-rows+1))
}

// runtimeDir is the folder of what lives as long as the user's session; empty where there is none.
func runtimeDir() string { return os.Getenv("XDG_RUNTIME_DIR") }
