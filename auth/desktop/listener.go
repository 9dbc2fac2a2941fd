package desktop

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/oauth"
)

// redirects receives the redirects of all logins of this process.
var redirects = &redirectListener{bound: map[int]*boundPort{}}

// redirectListener is an HTTP server on loopback addresses that receives the browser's redirects
// and passes each to its login, found by the parameter state. All logins usually use one port. A
// login with a fixed port in its redirect URI adds that port.
type redirectListener struct {
	mu    sync.Mutex // guards everything below
	bound map[int]*boundPort
	flows []*flow
}

// boundPort is a port at which the listener listens.
type boundPort struct {
	server    *http.Server
	listeners []net.Listener
	ipv6      bool // it listens at ::1, too
	users     int  // the number of flows that use the port; at 0 it is closed
}

func (b *boundPort) serveListener(listening net.Listener) {
	b.listeners = append(b.listeners, listening)
	go func() { _ = b.server.Serve(listening) }()
}

// listen returns a flow that receives the redirects to uri, an http URL of a loopback address. If
// uri has no port, listen chooses one.
func (l *redirectListener) listen(uri string) (*flow, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !isLoopbackHost(u.Hostname()) {
		return nil, fmt.Errorf("the redirect URI %s cannot be served here: want an http URL of a loopback address", uri)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	port, err := l.choosePort(u)
	if err != nil {
		return nil, err
	}
	l.bound[port].users++
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	f := newFlow(u.String(), port)
	f.release = func() { l.releasePort(port) }
	return f, nil
}

// choosePort binds and returns the port of u. If u has none, it tries the ports that are already
// bound, then the ports from FirstRedirectPort to LastRedirectPort, then any free port. The caller
// holds l.mu.
func (l *redirectListener) choosePort(u *url.URL) (int, error) {
	ipv6 := u.Hostname() != "127.0.0.1"
	if text := u.Port(); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port == 0 {
			return 0, fmt.Errorf("%s has no usable port", u)
		}
		return port, l.bindPort(port, ipv6)
	}
	for port := range l.bound {
		if l.bindPort(port, ipv6) == nil {
			return port, nil
		}
	}
	for port := oauth.FirstRedirectPort; port <= oauth.LastRedirectPort; port++ {
		if l.bindPort(port, ipv6) == nil {
			return port, nil
		}
	}
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no port on 127.0.0.1 is free: %w", err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	return port, l.bindPort(port, ipv6)
}

// bindPort listens at a port of 127.0.0.1, and of ::1 if ipv6 is true, unless the listener already
// does. On a machine without IPv6 it listens at 127.0.0.1 only. The caller holds l.mu.
func (l *redirectListener) bindPort(port int, ipv6 bool) error {
	if b := l.bound[port]; b != nil && (b.ipv6 || !ipv6) {
		return nil
	}
	b := l.bound[port]
	if b == nil {
		listening, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("another program uses the port %d: %w", port, err)
		}
		b = &boundPort{server: newRedirectServer(l)}
		l.bound[port] = b
		b.serveListener(listening)
	}
	if ipv6 {
		listening, err := net.Listen("tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
		switch {
		case err == nil:
			b.ipv6 = true
			b.serveListener(listening)
		case errors.Is(err, errInUse):
			if b.users == 0 {
				l.closePort(port)
			}
			return fmt.Errorf("another program uses the port %d: %w", port, err)
		} // after other errors, such as a missing IPv6, no other program can listen at ::1 either
	}
	return nil
}

func newRedirectServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
}

// releasePort ends a flow's use of a port. After the last flow it closes the port.
func (l *redirectListener) releasePort(port int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bound[port]
	if b.users--; b.users == 0 {
		l.closePort(port)
	}
}

// closePort stops listening at a port at once, and ends its server after the answers in progress.
// The caller holds l.mu.
func (l *redirectListener) closePort(port int) {
	b := l.bound[port]
	delete(l.bound, port)
	for _, listening := range b.listeners {
		_ = listening.Close() // at once, so that the next login can use the port
	}
	go closeServer(b.server)
}

// closeServer lets a server finish its answers for at most 2 seconds.
func closeServer(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}

func (l *redirectListener) addFlow(f *flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flows = append(l.flows, f)
}

func (l *redirectListener) removeFlow(f *flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.flows {
		if l.flows[i] == f {
			l.flows = append(l.flows[:i:i], l.flows[i+1:]...)
			return
		}
	}
}

// findFlow returns the flow with the given state, redirect path and port, or nil. It does not stop
// at the first match, so that its duration tells nothing about the states of other flows.
func (l *redirectListener) findFlow(state, path string, port int) *flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found *flow
	for _, f := range l.flows {
		if f.hasState(state) && f.path == path && f.port == port {
			found = f
		}
	}
	return found
}

// ServeHTTP passes a redirect to its flow. Every other request gets an error page and has no
// effect.
func (l *redirectListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setPageHeader(w.Header())
	host, portText, err := net.SplitHostPort(r.Host)
	port, portErr := strconv.Atoi(portText)
	local, isTCP := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	switch {
	case err != nil || portErr != nil || !isLoopbackHost(host) || !isTCP || local.Port != port:
		writePage(w, http.StatusMisdirectedRequest, "This address is not served here.") // DNS rebinding: another host's name leads here
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", "GET")
		writePage(w, http.StatusMethodNotAllowed, "Only a browser's GET is answered.")
		return
	case isPrefetch(r.Header):
		writePage(w, http.StatusServiceUnavailable, "This page cannot be loaded in advance.")
		return
	}
	values, err := parseRedirect(r.URL.RawQuery)
	if err != nil {
		status := http.StatusBadRequest
		if r.URL.RawQuery == "" {
			status = http.StatusNotFound
		}
		writePage(w, status, "This is not the answer of a login.")
		return
	}
	f := l.findFlow(values.Get("state"), r.URL.Path, port)
	switch {
	case f == nil:
		writePage(w, http.StatusBadRequest, "No login waits for this answer. Begin it again in the program.")
		return
	case !f.claim():
		writePage(w, http.StatusOK, "This login has its answer already. You can close this page.")
		return
	case values.Has("error"):
		writePage(w, http.StatusOK, "The login was not completed. The program says why. You can close this page.")
	default:
		writePage(w, http.StatusOK, "The program has received the answer and checks it. You can close this page.")
	}
	_ = http.NewResponseController(w).Flush() // the process may end as soon as it has the answer
	f.redirects <- values
}

// isPrefetch reports whether a browser loads a page that its user has not opened.
func isPrefetch(h http.Header) bool {
	return strings.Contains(h.Get("Sec-Purpose")+h.Get("Purpose")+h.Get("X-Moz"), "prefetch")
}

// removeQuery is a script that removes the authorization code from the address bar and from the
// browser's history.
const removeQuery = `history.replaceState(null,"",location.pathname)`

var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(removeQuery))
	return "default-src 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}()

func setPageHeader(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// writePage writes a page with a fixed text. The page must not show parameters of the request: at
// this point they may come from any web page.
func writePage(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Login</title><p>%s</p><script>%s</script></html>\n", text, removeQuery)
}
