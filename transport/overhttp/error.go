package overhttp

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// HTTPError is an answer over HTTP that is no message of the protocol. Find it with errors.As.
type HTTPError struct {
	Status int
	Header http.Header
	Body   []byte // its first 4 KiB
}

// NewHTTPError makes an error of a response, and reads what it keeps of the body; closing it is the caller's.
func NewHTTPError(r *http.Response) *HTTPError {
	failed, _ := ReadHTTPError(r, keptBody)
	return failed
}

const keptBody = 4 << 10

// ReadHTTPError is [NewHTTPError] of an answer that may be an error of the protocol all the same: body is all of it, up to a
// limit of at least 4 KiB.
func ReadHTTPError(r *http.Response, limit int) (failed *HTTPError, body []byte) {
	body, _ = io.ReadAll(io.LimitReader(r.Body, int64(max(limit, keptBody)))) // what could be read of it
	return &HTTPError{Status: r.StatusCode, Header: r.Header, Body: body[:min(len(body), keptBody)]}, body
}

func (e *HTTPError) Error() string {
	said := fmt.Sprintf("the server answered with HTTP status %d %s", e.Status, http.StatusText(e.Status))
	if to := e.Header.Get("Location"); to != "" && e.Status < 400 {
		return said + ", a redirect that makes a GET of a POST; dial where it leads: " + to
	}
	if text := e.bodyExcerpt(); text != "" {
		said += ": " + text
	}
	return said
}

// bodyExcerpt is the beginning of a body that is text for people.
func (e *HTTPError) bodyExcerpt() string {
	const shown = 200
	kind, _, _ := strings.Cut(e.Header.Get("Content-Type"), ";")
	if kind == "text/html" || !utf8.Valid(e.Body) {
		return ""
	}
	said := string(e.Body)
	if msg, err := (jsonrpc.Parser{}).Parse(e.Body); err == nil && msg.Error != nil {
		said = msg.Error.Message
	}
	text := strings.Join(strings.Fields(said), " ")
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}

// MeansLegacy reports whether the answer to a modern request may be that of a server that knows only earlier revisions:
// it says that something is wrong with the request, and nothing of credentials, rates or its own state.
func (e *HTTPError) MeansLegacy() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}
