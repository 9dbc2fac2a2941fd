package doctor

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/dowel-mcp/dowel/transport/streamable"
)

// ofHTTP finds what an answer means that is no message.
func ofHTTP(e *evidence) (finding, bool) {
	if to := elsewhere.FindStringSubmatch(e.err.Error()); to != nil {
		return finding{stepHTTP, "the server redirects to another origin, " + to[1], fmt.Sprintf("Give the URL at %s in place of this one if you trust it.", to[1])}, true
	}
	answer, ok := errors.AsType[*streamable.HTTPError](e.err)
	if !ok {
		return finding{}, false
	}
	f := finding{step: stepHTTP, summary: answered(answer)}
	switch status := answer.Status; {
	case status < 300:
		f.summary, f.advice = e.noMessage(answer)
	case status < 400:
		f.advice = redirected(answer, e.url)
	case status >= 500:
		f.advice = broken(status)
	default:
		f.advice = e.refusal(answer)
	}
	if metadata := parameter(answer.Header, "resource_metadata"); metadata != "" {
		f.summary += "; who may log in where is said at " + metadata
	}
	return f, true
}

var elsewhere = regexp.MustCompile(`redirects to another origin, (\S+?): `)

// answered is the status with the server's words.
func answered(e *streamable.HTTPError) string {
	return strings.TrimPrefix(e.Error(), "the server answered with ")
}

// refusal says what to do about a status of 4xx.
func (e *evidence) refusal(answer *streamable.HTTPError) string {
	metadata := parameter(answer.Header, "resource_metadata")
	switch answer.Status {
	case http.StatusUnauthorized:
		switch {
		case e.authorized:
			return "Renew the credentials that the server's headers hold, for the server refuses them."
		case metadata != "":
			return "Log in to the server, or give it a token in an Authorization header."
		}
		return "Give the server's credentials in a header, such as Authorization."
	case http.StatusForbidden:
		if scope := parameter(answer.Header, "scope"); scope != "" {
			return fmt.Sprintf("Log in again and grant the scope %s.", scope)
		}
		if e.authorized {
			return "Use credentials that may use this server, or ask who runs it for the right to."
		}
		return "Give the server's credentials in a header, or ask who runs it which hosts and origins may come."
	case http.StatusNotFound:
		return e.elsewhereOnHost()
	case http.StatusMethodNotAllowed:
		return "Check the path, which is often /mcp or /sse, for this one takes no messages."
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return "Check that the URL is that of the MCP endpoint, and that nothing in between changes the request's headers."
	case http.StatusProxyAuthRequired:
		return "Give the proxy's user and password in the variable that names the proxy."
	case http.StatusMisdirectedRequest:
		return "Use the host name that the server is known by."
	case http.StatusTooManyRequests:
		if after := answer.Header.Get("Retry-After"); after != "" {
			return fmt.Sprintf("Try again later, for the server asks to wait until then (Retry-After: %s).", after)
		}
		return "Try again later, for the server gets too many requests."
	case http.StatusRequestTimeout:
		return "Try again, for the server says that the request came too slowly."
	}
	return "Check that the URL is that of the MCP endpoint, whose path is often /mcp or /sse."
}

// elsewhereOnHost is what to do where there is nothing at the path.
func (e *evidence) elsewhereOnHost() string {
	if e.url == nil || strings.HasSuffix(strings.TrimRight(e.url.Path, "/"), "/mcp") {
		return "Check the path, for there is nothing at this one."
	}
	other := url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: "/mcp"}
	return fmt.Sprintf("Check the path, which is often /mcp, as in %s.", other.String())
}

// broken says what to do about a status of 5xx.
func broken(status int) string {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "Check that the server behind this address runs, and try again."
	case http.StatusNotImplemented:
		return "Check that the URL is that of the MCP endpoint, whose path is often /mcp or /sse."
	}
	return "Look into the log of the server, for the fault is there."
}

var loginPage = regexp.MustCompile(`(?i)log-?in|sign-?in|sso|oauth|authorize|saml`)

// redirected says what to do about a redirect that is not followed.
func redirected(answer *streamable.HTTPError, from *url.URL) string {
	to := answer.Header.Get("Location")
	if to == "" {
		return "Give the URL that this one stands for."
	}
	if loginPage.MatchString(to) {
		return "Give the server's credentials in a header, for it sends those without to a login page."
	}
	if u, err := url.Parse(to); err == nil && from != nil {
		to = shownURL(from.ResolveReference(u))
	}
	return fmt.Sprintf("Give the URL %s in place of this one.", to)
}

// noMessage says what an answer is that is none of the protocol's.
func (e *evidence) noMessage(answer *streamable.HTTPError) (summary, advice string) {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	advice = "Check that the URL is that of the MCP endpoint, whose path is often /mcp or /sse."
	if kind != "text/html" {
		return fmt.Sprintf("the server answered with content of type %q, and not with a message", kind), advice
	}
	if loginPage.Match(answer.Body) {
		advice = "Give the server's credentials in a header, or the path of the MCP endpoint: this one shows a login page."
	}
	return "the server answered with an HTML page, and not with a message", advice
}

var authParameter = regexp.MustCompile(`([A-Za-z_-]+)="([^"]*)"`)

// parameter returns a parameter of the WWW-Authenticate field.
func parameter(h http.Header, name string) string {
	for _, challenge := range h.Values("Www-Authenticate") {
		for _, m := range authParameter.FindAllStringSubmatch(challenge, -1) {
			if strings.EqualFold(m[1], name) {
				return m[2]
			}
		}
	}
	return ""
}
