package overhttp

import (
	"net/http"
	"strconv"
	"time"

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
	if len(body) > smallBody {
		writeInPieces(w, body)
		return
	}
	_, _ = w.Write(body) // who has gone needs no answer
}

// smallBody is what a socket takes at once.
const smallBody = 16 << 10

// unreadTimeout is how long a client may take for each piece of what is not small; a variable for tests.
var unreadTimeout = 30 * time.Second

// writeInPieces writes what a client has to read before it is written, for as long as it reads some of it now and then.
func writeInPieces(w http.ResponseWriter, body []byte) {
	const piece = 256 << 10
	control := http.NewResponseController(w)
	for err := error(nil); err == nil && len(body) > 0; body = body[min(piece, len(body)):] {
		_ = control.SetWriteDeadline(time.Now().Add(unreadTimeout))
		_, err = w.Write(body[:min(piece, len(body))])
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // or the connection could not be used again
}

// Shared by all responses, which do not change them.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)

func quoteShort(s string) string {
	const shown = 100
	return strconv.QuoteToASCII(s[:min(len(s), shown)])
}
