package doctor

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/internal/lazyregexp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// findHTTPError explains an HTTP response that carries no message.
func findHTTPError(e *evidence) (finding, bool) {
	if to := redirectOrigin().FindStringSubmatch(e.err.Error()); to != nil {
		return finding{stepHTTP, "the server redirects to another origin, " + to[1], fmt.Sprintf("Give the URL at %s in place of this one if you trust it.", to[1])}, true
	}
	answer, ok := errors.AsType[*streamable.HTTPError](e.err)
	if !ok {
		return finding{}, false
	}
	f := finding{step: stepHTTP, summary: statusText(answer)}
	switch status := answer.Status; {
	case status < 300:
		f.summary, f.advice = e.explainNonMessage(answer)
	case status < 400:
		f.advice = adviseRedirect(answer, e.url)
	case status >= 500:
		f.advice = advise5xx(status)
	default:
		f.advice = e.advise4xx(answer)
	}
	if metadata := httpwire.ChallengeParam(answer.Header, "resource_metadata"); metadata != "" {
		f.summary += "; its login is described at " + metadata
	}
	return f, true
}

var redirectOrigin = lazyregexp.New(`redirects to another origin, (\S+?): `)

const adviseEndpoint = "Check that this is the URL of the MCP endpoint: its path is often /mcp or /sse."

// statusText returns the status and the server's text.
func statusText(e *streamable.HTTPError) string {
	return strings.TrimPrefix(e.Error(), "the server answered with ")
}

// advise4xx advises on a 4xx status.
func (e *evidence) advise4xx(answer *streamable.HTTPError) string {
	switch answer.Status {
	case http.StatusUnauthorized:
		return e.advise401(answer)
	case http.StatusForbidden:
		if scope := httpwire.ChallengeParam(answer.Header, "scope"); scope != "" {
			return fmt.Sprintf("Log in again and grant the scope %s.", scope)
		}
		if e.authorized {
			return "Use credentials that may use this server, or ask its operator for access."
		}
		return "Give the server's credentials in a header, or ask its operator which hosts and origins it accepts."
	case http.StatusNotFound:
		return e.adviseOtherPath()
	case http.StatusMethodNotAllowed:
		return "Check the path: this one takes no messages, and the right one is often /mcp or /sse."
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		return "Check that this is the URL of the MCP endpoint, and that nothing in between changes the request's headers."
	case http.StatusProxyAuthRequired:
		return "Give the proxy's user and password in the variable that names the proxy."
	case http.StatusMisdirectedRequest:
		return "Use the host name under which the server is known."
	case http.StatusTooManyRequests:
		if after := answer.Header.Get("Retry-After"); after != "" {
			return fmt.Sprintf("Try again later: the server asks to wait (Retry-After: %s).", after)
		}
		return "Try again later: the server gets too many requests."
	case http.StatusRequestTimeout:
		return "Try again: the server says that the request came too slowly."
	}
	return adviseEndpoint
}

// advise401 advises on a refusal for lack of valid credentials.
func (e *evidence) advise401(answer *streamable.HTTPError) string {
	switch {
	case httpwire.ChallengeParam(answer.Header, "realm") == httpwire.Realm:
		return "Do what the refusal says: it comes from dowel, which needs a token and no login."
	case httpwire.ChallengeParam(answer.Header, "error") == "invalid_token" && answer.SentCredentials:
		return "Renew the token in the server's Authorization header, which has expired or is not valid."
	case e.authorized || answer.SentCredentials:
		return "Renew the credentials in the server's headers, which it refuses."
	case httpwire.ChallengeParam(answer.Header, "resource_metadata") != "":
		return "Log in to the server, or give it a token in an Authorization header."
	}
	return "Give the server's credentials in a header, such as Authorization."
}

// adviseOtherPath advises on a path that does not exist.
func (e *evidence) adviseOtherPath() string {
	if e.url == nil || strings.HasSuffix(strings.TrimRight(e.url.Path, "/"), "/mcp") {
		return "Check the path: the server has nothing at this one."
	}
	other := url.URL{Scheme: e.url.Scheme, Host: e.url.Host, Path: "/mcp"}
	return fmt.Sprintf("Check the path, which is often /mcp, as in %s.", other.String())
}

// advise5xx advises on a 5xx status.
func advise5xx(status int) string {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return "Check that the server behind this address runs, and try again."
	case http.StatusNotImplemented:
		return adviseEndpoint
	}
	return "Look into the log of the server, where the fault lies."
}

var loginPage = lazyregexp.New(`(?i)log-?in|sign-?in|sso|oauth|authorize|saml`)

// adviseRedirect advises on a redirect that was not followed.
func adviseRedirect(answer *streamable.HTTPError, from *url.URL) string {
	to := answer.Header.Get("Location")
	if to == "" {
		return "Give the URL to which this one redirects."
	}
	if loginPage().MatchString(to) {
		return "Give the server's credentials in a header: without them it redirects to a login page."
	}
	if u, err := url.Parse(to); err == nil && from != nil {
		to = shownURL(from.ResolveReference(u))
	}
	return fmt.Sprintf("Give the URL %s in place of this one.", to)
}

// explainNonMessage explains a successful response whose body is not a message.
func (e *evidence) explainNonMessage(answer *streamable.HTTPError) (summary, advice string) {
	kind, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	advice = adviseEndpoint
	if kind != "text/html" {
		return fmt.Sprintf("the server answered with content of type %q instead of a message", kind), advice
	}
	if loginPage().Match(answer.Body) {
		advice = "Give the server's credentials in a header, or the path of the MCP endpoint: this one shows a login page."
	}
	return "the server answered with an HTML page instead of a message", advice
}
