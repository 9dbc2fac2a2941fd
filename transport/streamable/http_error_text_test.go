package streamable

import (
	"net/http"
	"testing"
)

// The text of a refusal says each thing once, and names a web page as such.
func TestTextOfHTTPError(t *testing.T) {
	t.Parallel()
	refused := http.Header{"Www-Authenticate": {`Bearer error="invalid_token", error_description="the token has expired"`}}
	for want, e := range map[string]*HTTPError{
		"the server answered with HTTP status 401 Unauthorized: it refuses the credentials of the request (invalid_token: the token has expired)": {
			Status: 401, Header: refused, SentCredentials: true, Body: []byte(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"the token has expired"}}`),
		},
		"the server answered with HTTP status 401 Unauthorized: it refuses the credentials of the request (invalid_token: the token has expired): log in": {
			Status: 401, Header: refused, SentCredentials: true, Body: []byte("log in"),
		},
		"the server answered with HTTP status 200 OK, with a web page such as a login in place of a message": {
			Status: 200, Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: []byte("<title>Sign in</title>"),
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
