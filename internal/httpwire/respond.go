package httpwire

import (
	"net/http"
	"strconv"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
)

// Refuse answers an HTTP request that contains no valid message, or that is rejected before its
// message is read. The body is a JSON-RPC error without an id. reason is its message.
func Refuse(w http.ResponseWriter, status int, reason string) {
	RefuseRequest(w, jsonrpc.ID{}, status, reason)
}

// RefuseRequest is [Refuse] for a message that was read: the error has the id of the request. id is
// zero for other messages.
func RefuseRequest(w http.ResponseWriter, id jsonrpc.ID, status int, reason string) {
	body := jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: reason})
	WriteDocument(w, status, body)
}

// QuoteShort quotes the beginning of a text that a client has sent, for the reason of a refusal.
func QuoteShort(s string) string {
	const maxShown = 100
	return strconv.QuoteToASCII(s[:min(len(s), maxShown)])
}

// RefuseBusy answers with status 503 and asks the client to retry after the given time. id is zero
// if there is no request, or if it was not read.
func RefuseBusy(w http.ResponseWriter, id jsonrpc.ID, reason string, retryAfter time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	RefuseRequest(w, id, http.StatusServiceUnavailable, reason)
}

// WriteDocument answers an HTTP request with one JSON document. A client that reads nothing for 30
// seconds is cut off.
func WriteDocument(w http.ResponseWriter, status int, body []byte) {
	writeHead(w, status, len(body))
	if len(body) > smallBody {
		writeInPieces(w, body, nil)
		return
	}
	_, _ = w.Write(body) // a client that has disconnected needs no answer
}

// writeHead writes the status and the header of a JSON document.
func writeHead(w http.ResponseWriter, status, length int) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	if length > announcedBody {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	w.WriteHeader(status)
}

// announcedBody is the size in bytes of a body that fits the buffer of net/http. net/http announces
// the length of such a body itself, without an allocation.
const announcedBody = 2 << 10

// smallBody is a size in bytes that a socket's buffer takes at once, so that a write does not wait
// for the client.
const smallBody = 16 << 10

// unreadTimeout bounds how long a client may take to read each piece of a body that is not small.
// It is a variable for tests.
var unreadTimeout = 30 * time.Second

// writeInPieces writes a body whose size makes the handler wait for the client. The write deadline
// is moved with each piece, so a slow client is served as long as it reads. lease may be nil.
func writeInPieces(w http.ResponseWriter, body []byte, lease *quota.Lease) {
	const piece = 256 << 10
	control := http.NewResponseController(w)
	for err := error(nil); err == nil && len(body) > 0; body = body[min(piece, len(body)):] {
		_ = control.SetWriteDeadline(time.Now().Add(unreadTimeout))
		_, err = w.Write(body[:min(piece, len(body))])
		lease.NoteProgress()
	}
	_ = control.Flush()
	_ = control.SetWriteDeadline(time.Time{}) // else the connection cannot be reused
}

// Values of header fields. All responses share them, and net/http does not change them.
var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)
