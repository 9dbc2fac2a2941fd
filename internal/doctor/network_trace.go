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

// networkTrace is the round tripper of one examination. It traces the first connection and records
// every exchange, and turns both into steps. The goroutines of a dial use it concurrently.
type networkTrace struct {
	client    *http.Client
	base      http.RoundTripper
	transport *http.Transport // base, if base is an *http.Transport
	mask      *masker
	url       *url.URL
	dials     dialTracker // of transport

	stepReady chan struct{} // receives a token when steps can be taken

	mu               sync.Mutex
	steps            []Step
	stageStart       time.Time // when the step in progress began
	stage            string    // the step in progress
	isTraced         bool      // the first request has begun
	isResolved       bool      // a host name was looked up
	isConnected      bool
	refusedAddresses []string // addresses that could not be connected to, each with the reason
	hasAnswer        bool     // an answer was usable
	exchanges        []exchange
}

// exchange is a request and its response.
type exchange struct {
	method, path, media string
	status              int
	authorized          bool // the request carried credentials
}

// expiresSoon is the remaining life of a certificate below which a warning is due.
const expiresSoon = 14 * 24 * time.Hour

// newNetwork returns a trace around a copy of c. c may be nil. The copy has its own connections, so
// that every step can be observed.
func newNetwork(c *http.Client, m *masker, u *url.URL) *networkTrace {
	n := &networkTrace{mask: m, url: u, stepReady: make(chan struct{}, 1), stage: stepConnect}
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.Transport = n.wrapBase(own.Transport)
	n.client = &own
	return n
}

// basedTransport is a round tripper that authorizes requests and sends them with another one.
type basedTransport interface {
	WithBase(base http.RoundTripper) http.RoundTripper
}

// wrapBase makes the trace send its requests with rt, or with a default if it is nil. It returns
// the round tripper of the client. The trace is below an authorization, so that it sees each
// request.
func (n *networkTrace) wrapBase(rt http.RoundTripper) http.RoundTripper {
	authorizing, isBased := rt.(basedTransport)
	n.base = rt
	if n.base == nil || isBased {
		n.base = http.DefaultTransport
	}
	if shared, ok := n.base.(*http.Transport); ok {
		n.transport = shared.Clone() // without idle connections
		n.base = n.transport
		n.dials.trackTransport(n.transport)
	}
	if isBased {
		return authorizing.WithBase(n)
	}
	return n
}

// HTTPTransport returns the transport that sends the requests, or nil if it has another type. An
// authorization asks other servers with it, past the trace.
func (n *networkTrace) HTTPTransport() *http.Transport { return n.transport }

// closeConns closes the connections that the dial left open.
func (n *networkTrace) closeConns() {
	if n != nil && n.transport != nil {
		n.transport.CloseIdleConnections()
		n.dials.closeAll()
	}
}

// proxyFor returns the proxy for a URL, or nil if there is none or a foreign round tripper decides.
func (n *networkTrace) proxyFor(u *url.URL) (*url.URL, error) {
	if n.transport == nil || n.transport.Proxy == nil {
		return nil, nil
	}
	return n.transport.Proxy(&http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}})
}

// RoundTrip implements [http.RoundTripper].
func (n *networkTrace) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mask.addHeader(r.Header)
	if n.startTrace() {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), n.newClientTrace()))
	}
	resp, err := n.base.RoundTrip(r)
	if err == nil {
		n.recordExchange(r, resp)
	}
	return resp, err
}

// startTrace reports whether this is the first request, which is traced.
func (n *networkTrace) startTrace() (first bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first, n.isTraced = !n.isTraced, true
	if first {
		n.stageStart = time.Now()
	}
	return first
}

// newClientTrace returns hooks that turn the events of a connection into steps.
func (n *networkTrace) newClientTrace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { n.enterStage(stepName) },
		DNSDone:           n.dnsDone,
		ConnectStart:      func(string, string) { n.enterStage(stepConnect) },
		ConnectDone:       n.connectDone,
		TLSHandshakeStart: func() { n.enterStage(stepTLS) },
		TLSHandshakeDone:  n.tlsDone,
		GotConn:           n.gotConn,
	}
}

// enterStage records the step in progress. After a connection was made, parallel attempts are
// ignored.
func (n *networkTrace) enterStage(stage string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stage == stepTLS || !n.isConnected {
		n.stage = stage
	}
}

// addStep appends a step that took the time since the last one. n.mu must be held.
func (n *networkTrace) addStep(s Step) {
	now := time.Now()
	s.Took = max(now.Sub(n.stageStart), 1)
	n.stageStart = now
	n.steps = append(n.steps, s)
	select {
	case n.stepReady <- struct{}{}:
	default:
	}
}

// takeSteps returns the steps since its last call.
func (n *networkTrace) takeSteps() []Step {
	n.mu.Lock()
	defer n.mu.Unlock()
	steps := n.steps
	n.steps = nil
	return steps
}

func (n *networkTrace) dnsDone(info httptrace.DNSDoneInfo) {
	if info.Err != nil {
		return
	}
	var addresses []string
	for _, a := range info.Addrs {
		addresses = append(addresses, a.String())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isResolved {
		return
	}
	n.isResolved = true
	n.addStep(Step{Name: stepName, Status: OK, Detail: strings.Join(addresses, ", ")})
}

// connectDone records the first connection. The addresses that failed before it are part of the
// step.
func (n *networkTrace) connectDone(_, address string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isConnected {
		return
	}
	if err != nil {
		n.refusedAddresses = append(n.refusedAddresses, fmt.Sprintf("%s: %s", address, shortNetError(err)))
		return
	}
	n.isConnected = true
	if !n.isResolved {
		n.addStep(Step{Name: stepName, Status: Skipped, Detail: "the URL holds an address"})
	}
	says := "TCP to " + address
	if len(n.refusedAddresses) > 0 {
		says += ", after " + strings.Join(n.refusedAddresses, "; ")
	}
	n.addStep(Step{Name: stepConnect, Status: OK, Detail: says})
	n.stage = stepHTTP
}

func (n *networkTrace) tlsDone(state tls.ConnectionState, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err != nil {
		return
	}
	n.addStep(tlsStep(state, time.Now()))
	n.stage = stepHTTP
}

// tlsStep describes a TLS connection.
func tlsStep(state tls.ConnectionState, now time.Time) Step {
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

// gotConn notices that the client reused an open connection.
func (n *networkTrace) gotConn(info httptrace.GotConnInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if info.Reused && !n.isConnected {
		n.isConnected = true
		n.addStep(Step{Name: stepConnect, Status: Skipped, Detail: "the HTTP client had a connection open"})
	}
	n.stage = stepHTTP
}

// recordExchange records a response. The first usable one completes the HTTP step.
func (n *networkTrace) recordExchange(r *http.Request, resp *http.Response) {
	media, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	x := exchange{method: r.Method, path: r.URL.Path, media: media, status: resp.StatusCode, authorized: r.Header.Get("Authorization") != ""}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.exchanges = append(n.exchanges, x)
	n.stage = stepHTTP
	isMessage := x.status >= 200 && x.status <= 299 && (media == "application/json" || media == "text/event-stream")
	if n.hasAnswer || !isMessage && x.status != http.StatusSwitchingProtocols {
		return
	}
	n.hasAnswer = true
	n.addStep(Step{Name: stepHTTP, Status: OK, Detail: n.summarizeExchanges()})
	n.stage = stepHandshake
}

// summarizeExchanges formats the exchanges in one line. n.mu must be held.
func (n *networkTrace) summarizeExchanges() string {
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

// usesHTTPSSE reports whether the server speaks HTTP+SSE.
func (n *networkTrace) usesHTTPSSE() bool {
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

// addTo copies the recorded facts to e.
func (n *networkTrace) addTo(e *evidence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.stage, e.refusedAddresses = n.stage, n.refusedAddresses
	for _, x := range n.exchanges {
		e.authorized = e.authorized || x.authorized
	}
}

// shortNetError formats a network error without the operation and the address.
func shortNetError(err error) string {
	for {
		switch e := err.(type) {
		case *net.OpError:
			err = e.Err
		default:
			return strings.TrimPrefix(err.Error(), "connect: ")
		}
	}
}
