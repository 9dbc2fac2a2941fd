package doctor

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
)

// network makes the requests of one examination, and listens to the first connection and to every answer: what it finds is
// a step. It is used by the goroutines of a dial.
type network struct {
	client *http.Client
	base   http.RoundTripper
	own    *http.Transport // base, unless that is somebody else's
	mask   *masker
	url    *url.URL
	dials  dials // of own

	more chan struct{} // holds a token where there are steps to take

	mu        sync.Mutex
	steps     []Step
	mark      time.Time // when the step that is under way began
	stage     string    // that step
	traced    bool      // the first request has begun
	named     bool      // a name has been looked up
	connected bool
	refused   []string // addresses that could not be connected to, with the reason
	answered  bool     // an answer was of use
	exchanges []exchange
}

// exchange is a request and what came of it.
type exchange struct {
	method, path, media string
	status              int
	authorized          bool // it carried credentials
}

// expiresSoon is when the end of a certificate is worth a warning.
const expiresSoon = 14 * 24 * time.Hour

func newNetwork(c *http.Client, m *masker, u *url.URL) *network {
	n := &network{mask: m, url: u, more: make(chan struct{}, 1), stage: stepConnect}
	own := http.Client{}
	if c != nil {
		own = *c
	}
	n.base = own.Transport
	if n.base == nil {
		n.base = http.DefaultTransport
	}
	if shared, ok := n.base.(*http.Transport); ok {
		n.own = shared.Clone() // without connections that are open already
		n.base = n.own
		n.dials.watch(n.own)
	}
	own.Transport = n
	n.client = &own
	return n
}

// close gives up what the dial has left open.
func (n *network) close() {
	if n != nil && n.own != nil {
		n.own.CloseIdleConnections()
		n.dials.close()
	}
}

// proxyFor returns the proxy for a URL; nil for none, or where only the client's own transport knows.
func (n *network) proxyFor(u *url.URL) (*url.URL, error) {
	if n.own == nil || n.own.Proxy == nil {
		return nil, nil
	}
	return n.own.Proxy(&http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}})
}

// RoundTrip implements [http.RoundTripper].
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mask.header(r.Header)
	if n.begin() {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), n.trace()))
	}
	resp, err := n.base.RoundTrip(r)
	if err == nil {
		n.note(r, resp)
	}
	return resp, err
}

func (n *network) begin() (first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first, n.traced = !n.traced, true
	if first {
		n.mark = time.Now()
	}
	return first
}

// trace makes steps of what happens to a connection.
func (n *network) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { n.enter(stepName) },
		DNSDone:           n.resolved,
		ConnectStart:      func(string, string) { n.enter(stepConnect) },
		ConnectDone:       n.dialed,
		TLSHandshakeStart: func() { n.enter(stepTLS) },
		TLSHandshakeDone:  n.secured,
		GotConn:           n.got,
	}
}

// enter begins a step; connections that are tried beside the one that was made begin nothing.
func (n *network) enter(stage string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stage == stepTLS || !n.connected {
		n.stage = stage
	}
}

// add makes a step; n.mu is held.
func (n *network) add(s Step) {
	now := time.Now()
	s.Took = max(now.Sub(n.mark), 1)
	n.mark = now
	n.steps = append(n.steps, s)
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// take returns the steps that have been made since it was called last.
func (n *network) take() []Step {
	n.mu.Lock()
	defer n.mu.Unlock()
	steps := n.steps
	n.steps = nil
	return steps
}

func (n *network) resolved(info httptrace.DNSDoneInfo) {
	if info.Err != nil {
		return
	}
	var addresses []string
	for _, a := range info.Addrs {
		addresses = append(addresses, a.String())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.named {
		return
	}
	n.named = true
	n.add(Step{Name: stepName, Status: OK, Detail: strings.Join(addresses, ", ")})
}

func (n *network) dialed(_, address string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.connected {
		return
	}
	if err != nil {
		n.refused = append(n.refused, fmt.Sprintf("%s: %s", address, plain(err)))
		return
	}
	n.connected = true
	if !n.named {
		n.add(Step{Name: stepName, Status: Skipped, Detail: "the URL holds an address"})
	}
	says := "TCP to " + address
	if len(n.refused) > 0 {
		says += ", after " + strings.Join(n.refused, "; ")
	}
	n.add(Step{Name: stepConnect, Status: OK, Detail: says})
	n.stage = stepHTTP
}

func (n *network) secured(state tls.ConnectionState, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		return
	}
	n.add(certified(state, time.Now()))
	n.stage = stepHTTP
}

// certified says what a secure connection is like.
func certified(state tls.ConnectionState, now time.Time) Step {
	s := Step{Name: stepTLS, Status: OK, Detail: tls.VersionName(state.Version)}
	if len(state.PeerCertificates) == 0 {
		return s
	}
	leaf := state.PeerCertificates[0]
	s.Detail += ", certificate valid until " + leaf.NotAfter.Format(time.DateOnly)
	if left := leaf.NotAfter.Sub(now); left < expiresSoon {
		s.Status = Warning
		s.Advice = fmt.Sprintf("Renew the server's certificate, which expires in %d days.", int(left.Hours()/24))
	}
	return s
}

// got notices a connection that was open already.
func (n *network) got(info httptrace.GotConnInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if info.Reused && !n.connected {
		n.connected = true
		n.add(Step{Name: stepConnect, Status: Skipped, Detail: "the HTTP client had a connection open"})
	}
	n.stage = stepHTTP
}

// note keeps what was answered; the first answer that is of use is a step.
func (n *network) note(r *http.Request, resp *http.Response) {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	x := exchange{method: r.Method, path: r.URL.Path, media: media, status: resp.StatusCode, authorized: r.Header.Get("Authorization") != ""}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exchanges = append(n.exchanges, x)
	n.stage = stepHTTP
	if n.answered || x.status < 200 || x.status > 299 || media != "application/json" && media != "text/event-stream" {
		return
	}
	n.answered = true
	n.add(Step{Name: stepHTTP, Status: OK, Detail: n.summary()})
	n.stage = stepHandshake
}

// summary is the exchanges in one line; n.mu is held.
func (n *network) summary() string {
	var all []string
	for _, x := range n.exchanges {
		says := x.method
		if x.path != n.url.Path {
			says += " " + x.path
		}
		says = strings.TrimSpace(fmt.Sprintf("%s → %d %s", says, x.status, x.media))
		if len(all) == 0 || all[len(all)-1] != says {
			all = append(all, says)
		}
	}
	return strings.Join(all, ", ")
}

// older reports whether a server was found that speaks HTTP+SSE.
func (n *network) older() bool {
	if n == nil {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.exchanges {
		if x.status == http.StatusOK {
			return x.method == http.MethodGet && x.media == "text/event-stream"
		}
	}
	return false
}

// tell adds what was heard to the evidence.
func (n *network) tell(e *evidence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.stage, e.refused = n.stage, n.refused
	for _, x := range n.exchanges {
		e.authorized = e.authorized || x.authorized
	}
}

// plain is a network error in its shortest words.
func plain(err error) string {
	for {
		switch e := err.(type) {
		case *net.OpError:
			err = e.Err
		default:
			return strings.TrimPrefix(err.Error(), "connect: ")
		}
	}
}
