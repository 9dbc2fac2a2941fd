package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// web is the gateway over HTTP, at an address.
type web struct {
	front  *gateway.HTTPHandler
	server *http.Server
	served chan error
	Url    string
	Token  bool // clients have to show one
}

// open serves the gateway at its address.
func (h *Daemon) open() (*web, error) {
	f := h.options.ListenOptions
	address := f.Address
	if address == "" {
		address = h.settings.Address
	}
	if address == "" {
		address = DefaultAddress
	}
	listener, err := net.Listen("tcp", LocalAddress(address))
	if err != nil {
		return nil, fmt.Errorf("the gateway cannot be at %s: %w; give it another address with --http", address, err)
	}
	token, err := h.token(listener.Addr())
	if err != nil {
		listener.Close()
		return nil, err
	}
	shared := h.serverOptions()
	w := &web{served: make(chan error, 1), Url: "http://" + reachable(listener.Addr()), Token: token != ""}
	f.Hosts, f.Origins = slices.Concat(f.Hosts, h.settings.Hosts), slices.Concat(f.Origins, h.settings.Origins)
	w.front = h.exposed().HTTPHandler(&gateway.HTTPOptions{
		Streamable: streamable.Options{ServerOptions: shared}, SSE: sse.Options{ServerOptions: shared},
		Guard: f.Guard(), Token: token, Middleware: h.middleware(), Clients: h.clients(), Page: control.Page(h),
	})
	w.server = &http.Server{Handler: w.front, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(h.options.Logger.Handler(), slog.LevelDebug)}
	go func() { w.served <- w.server.Serve(listener) }()
	h.Web.Store(w)
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
func (h *Daemon) token(a net.Addr) (string, error) {
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
	h.options.Notice("Other machines need the gateway's token: dowel status --token")
	return token, nil
}

func (w *web) shutdown(ctx context.Context) error {
	return errors.Join(Shutdown(ctx, w.front.Shutdown), Shutdown(ctx, w.server.Shutdown), w.server.Close())
}

// closeNotice is how long others of the user's processes have to hear that this dowel ends.
const closeNotice = 100 * time.Millisecond

// listen lets other programs of the user in, and returns what ends that.
func (h *Daemon) listen(l net.Listener) func(context.Context) error {
	inside := h.gateway.HTTPHandler(&gateway.HTTPOptions{
		Streamable: streamable.Options{ServerOptions: h.serverOptions(), Principal: control.Principal},
		Guard:      streamable.Guard{Off: true}, Middleware: h.middleware(),
	})
	life, end := context.WithCancel(context.Background())
	server := &http.Server{Handler: control.Handler(life, h, h.Hub, inside), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is shut down
	}()
	return func(ctx context.Context) error {
		end()                   // of the streams of events, which tells those who go through this dowel that it takes no more calls
		time.Sleep(closeNotice) // what they have sent by then is answered
		err := Shutdown(ctx, inside.Shutdown)
		_ = Shutdown(ctx, server.Shutdown)
		server.Close()
		<-served
		return err
	}
}
