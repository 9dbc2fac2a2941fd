package userlogin

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// principalField is the header field in which writePrincipal returns the principal. The response
// never leaves this process.
const principalField = "Dowel-Principal"

// writePrincipal handles a request after the check of its token. It returns the principal of the
// token in principalField, or no field if the request has no token.
func writePrincipal(w http.ResponseWriter, r *http.Request) {
	if a := httpwire.AuthorizationFrom(r.Context()); a != nil {
		w.Header().Set(principalField, a.Principal.ID)
	}
	w.WriteHeader(http.StatusOK)
}

// selfTransport answers requests to the gateway within the process, because the gateway may not be
// able to reach its own public address. Other requests go over the network.
type selfTransport struct {
	host    string
	handler http.Handler
}

// network sends the requests that do not go to the gateway.
var network = httpwire.NewTransport()

// RoundTrip implements [http.RoundTripper].
func (t *selfTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host != t.host {
		return network.RoundTrip(r)
	}
	if r.Body != nil {
		defer r.Body.Close()
	}
	in := r.Clone(r.Context())
	in.Host, in.RequestURI, in.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "127.0.0.1:0"
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(w, in)
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// recorder is an [http.ResponseWriter] that keeps the response in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header                { return w.header }
func (w *recorder) WriteHeader(status int)             { w.status = status }
func (w *recorder) Write(text []byte) (n int, _ error) { return w.body.Write(text) }
