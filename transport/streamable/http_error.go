package streamable

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/internal/httpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// HTTPError is an HTTP answer that is not a message of the protocol, for example one of a proxy or
// a request for credentials. Both transports over HTTP return it, and [errors.As] finds it.
type HTTPError struct {
	Status int         // the HTTP status code
	Header http.Header // of the answer
	Body   []byte      // the first 4 KiB of the body
	// SentCredentials says that the request had an Authorization field, a cookie or a user in its
	// URL. It tells refused credentials from missing ones.
	SentCredentials bool
}

// newHTTPError reads an [HTTPError] from a response. The caller closes the response's body.
func newHTTPError(r *http.Response) *HTTPError {
	err, _ := readHTTPError(r, 0)
	return err
}

// readHTTPError is [newHTTPError] for an answer that may still contain an error of the protocol.
// body is the whole body, up to a limit of at least 4 KiB.
func readHTTPError(r *http.Response, limit int) (httpErr *HTTPError, body []byte) {
	body = httpwire.ReadErrorBody(r, limit)
	return &HTTPError{
		Status: r.StatusCode, Header: r.Header, Body: body[:min(len(body), httpwire.MaxErrorBody)], SentCredentials: httpwire.SentCredentials(r),
	}, body
}

// Error returns the status, how a 401 refers to the credentials, and the beginning of the body if
// that is text for people.
func (e *HTTPError) Error() string {
	text := fmt.Sprintf("the server answered with HTTP status %d %s", e.Status, http.StatusText(e.Status))
	if to := e.Header.Get("Location"); to != "" && e.Status < 400 {
		return text + ", a redirect that would turn a POST into a GET; dial its target instead: " + to
	}
	if e.Status == http.StatusOK && e.isPage() {
		return text + ", with a web page such as a login in place of a message"
	}
	said := ""
	if e.Status == http.StatusUnauthorized {
		said = e.describeChallenge()
		text += ": " + said
	}
	if excerpt := e.bodyExcerpt(); excerpt != "" && !strings.Contains(said, excerpt) {
		text += ": " + excerpt
	}
	return text
}

// describeChallenge says of a 401 who refused which credentials, and the reason in the
// WWW-Authenticate field (RFC 6750, section 3).
func (e *HTTPError) describeChallenge() string {
	switch {
	case httpwire.ChallengeParam(e.Header, "realm") == httpwire.Realm:
		return "the server is dowel itself"
	case !e.SentCredentials:
		return "the request had no credentials"
	}
	text := "it refuses the credentials of the request"
	code, description := httpwire.ChallengeParam(e.Header, "error"), httpwire.ChallengeParam(e.Header, "error_description")
	switch {
	case code != "" && description != "":
		return text + " (" + shortenExcerpt(code+": "+description) + ")"
	case code+description != "":
		return text + " (" + shortenExcerpt(code+description) + ")"
	}
	return text
}

func (e *HTTPError) isPage() bool {
	media, _, _ := strings.Cut(e.Header.Get("Content-Type"), ";")
	return media == "text/html"
}

// bodyExcerpt returns the beginning of the body if it is text for people: the message of a JSON-RPC
// error or plain text.
func (e *HTTPError) bodyExcerpt() string {
	if e.isPage() || !utf8.Valid(e.Body) {
		return ""
	}
	text := string(e.Body)
	if msg, err := jsonrpc.Parse(e.Body, nil); err == nil && msg.Error != nil {
		text = msg.Error.Message
	}
	return shortenExcerpt(text)
}

// shortenExcerpt puts a text of the server into one line of at most 200 bytes.
func shortenExcerpt(text string) string {
	const maxShown = 200
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// MeansLegacy reports whether the answer to a modern request may come from a server that knows only
// earlier revisions. It is true if the status rejects the request itself, and false if it is about
// credentials, rates or the server's state.
func (e *HTTPError) MeansLegacy() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
