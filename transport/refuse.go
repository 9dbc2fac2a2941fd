package transport

import (
	"net/http"
	"strconv"

	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Refuse answers an HTTP request that is no message of the protocol, or none that may be looked at: with a status, and an
// error without id that says why.
func Refuse(w http.ResponseWriter, status int, why string) {
	body := jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why})
	Respond(w, status, body)
}

// Respond answers an HTTP request with one JSON document.
func Respond(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) // who has gone needs no answer
}

// Shared by all responses, which do not change them.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)

func quote(s string) string {
	const shown = 100
	return strconv.QuoteToASCII(s[:min(len(s), shown)])
}
