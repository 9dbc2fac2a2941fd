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
)

// instrumented returns the target with a client of HTTP that is listened to.
func (w *walk) instrumented() any {
	switch t := w.p.Target.(type) {
	case streamable.URL:
		t.Client = w.network.client
		return t
	case sse.URL:
		t.Client = w.network.client
		return t
	}
	w.options.HTTP.Client = w.network.client
	return w.p.Target
}

// clientOf returns the client of HTTP that a target is dialed with; nil for a default one.
func (w *walk) clientOf() *http.Client {
	switch t := w.p.Target.(type) {
	case streamable.URL:
		return t.Client
	case sse.URL:
		return t.Client
	}
	return w.p.Options.HTTP.Client
}

// proxyVariables are the variables that [http.ProxyFromEnvironment] reads for a scheme.
func proxyVariables(scheme string) []string {
	if scheme == "https" {
		return []string{"HTTPS_PROXY", "https_proxy"}
	}
	return []string{"HTTP_PROXY", "http_proxy"}
}

// setOne returns the first of the variables that is set.
func setOne(names []string) string {
	for _, name := range names {
		if os.Getenv(name) != "" {
			return name
		}
	}
	return ""
}

// proxyError says that the way to the server cannot be made out.
type proxyError struct {
	variable string // that names the proxy; empty where it is none of the environment's
	err      error
}

func (e *proxyError) Error() string { return fmt.Sprintf("the proxy cannot be used: %v", e.err) }
func (e *proxyError) Unwrap() error { return e.err }

// proxy says whether something stands between here and the server.
func (w *walk) proxy() bool {
	w.network = newNetwork(w.clientOf(), w.mask, w.url)
	variable := setOne(proxyVariables(w.url.Scheme))
	to, err := w.network.proxyFor(w.url)
	switch {
	case err != nil:
		w.fail(&proxyError{variable, err})
		return false
	case to != nil:
		w.proxied = to.Host
		return w.report(Step{Name: stepProxy, Status: OK, Detail: fmt.Sprintf("requests go through %s, as %s says", to.Host, cmp.Or(variable, "the HTTP client"))})
	case variable != "":
		return w.report(Step{Name: stepProxy, Status: Skipped, Detail: variable + " is set and does not apply to this URL"})
	}
	return true
}

// reach dials the URL, and tells what the network does as it does it.
func (w *walk) reach() {
	d := w.dial(w.instrumented())
	defer d.end()
	for waiting := true; waiting; {
		select {
		case <-w.network.more:
		case <-d.done:
			waiting = false
		}
		for _, s := range w.network.take() {
			if !w.report(s) {
				return
			}
		}
	}
	if d.err != nil {
		w.network.tell(&w.evidence)
		w.fail(d.err)
		return
	}
	if w.greeted(d.client) {
		w.know(d.client)
	}
}

// shownURL is a URL without what may be secret.
func shownURL(u *url.URL) string {
	shown := *u
	shown.User, shown.RawQuery, shown.Fragment = nil, "", ""
	if u.RawQuery != "" {
		shown.RawQuery = hidden
	}
	return strings.ReplaceAll(shown.String(), url.QueryEscape(hidden), hidden)
}
