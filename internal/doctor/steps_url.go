package doctor

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// instrumentTarget returns the target with an HTTP client that records what happens on the network.
func (w *examination) instrumentTarget() any {
	switch t := w.server.Target.(type) {
	case streamable.URL:
		t.Client = w.network.client
		return t
	case sse.URL:
		t.Client = w.network.client
		return t
	case websocket.URL:
		t.Client = w.network.client
		return t
	}
	w.options.HTTP.Client = w.network.client
	return w.server.Target
}

// httpClient returns the target's own HTTP client, or nil for the default one.
func (w *examination) httpClient() *http.Client {
	switch t := w.server.Target.(type) {
	case streamable.URL:
		return t.Client
	case sse.URL:
		return t.Client
	case websocket.URL:
		return t.Client
	}
	return w.server.Options.HTTP.Client
}

// proxyVariables returns the variables that [http.ProxyFromEnvironment] reads for a URL scheme.
func proxyVariables(scheme string) []string {
	if scheme == "https" {
		return []string{"HTTPS_PROXY", "https_proxy"}
	}
	return []string{"HTTP_PROXY", "http_proxy"}
}

// firstSet returns the name of the first variable that is set, or "".
func firstSet(names []string) string {
	for _, name := range names {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// httpURL returns the URL of the HTTP request that opens a WebSocket connection, and other URLs
// unchanged.
func httpURL(u *url.URL) *url.URL {
	at := *u
	switch u.Scheme {
	case "ws":
		at.Scheme = "http"
	case "wss":
		at.Scheme = "https"
	}
	return &at
}

// proxyError means that the proxy settings are unusable.
type proxyError struct {
	variable string // the variable that names the proxy; empty if the environment names none
	err      error
}

func (e *proxyError) Error() string { return fmt.Sprintf("the proxy cannot be used: %v", e.err) }
func (e *proxyError) Unwrap() error { return e.err }

// checkProxy reports the proxy between this machine and the server.
func (w *examination) checkProxy() bool {
	w.network = newNetwork(w.httpClient(), w.mask, w.url)
	at := httpURL(w.url)
	variable := firstSet(proxyVariables(at.Scheme))
	to, err := w.network.proxyFor(at)
	switch {
	case err != nil:
		w.reportFailure(&proxyError{variable, err})
		return false
	case to != nil:
		w.proxied = to.Host
		return w.reportStep(Step{Name: stepProxy, Status: OK, Detail: fmt.Sprintf("requests go through %s, as %s says", to.Host, cmp.Or(variable, "the HTTP client"))})
	case variable != "":
		return w.reportStep(Step{Name: stepProxy, Status: Skipped, Detail: variable + " is set and does not apply to this URL"})
	}
	return true
}

// examineURL dials the URL and reports network steps while they happen.
func (w *examination) examineURL() {
	d := w.startDial(w.instrumentTarget())
	defer d.closeDial()
	for waiting := true; waiting; {
		select {
		case <-w.network.stepReady:
		case <-d.done:
			waiting = false
		}
		for _, s := range w.network.takeSteps() {
			if !w.reportStep(s) {
				return
			}
		}
	}
	if d.err != nil {
		w.network.addTo(&w.evidence)
		w.reportFailure(d.err)
		return
	}
	if w.reportHandshake(d.client) {
		w.inspectServer(d.client)
	}
}

// shownURL returns the URL without credentials, query and fragment.
func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	if u.RawQuery != "" {
		shown.RawQuery = hidden
	}
	return strings.ReplaceAll(shown.String(), url.QueryEscape(hidden), hidden)
}
