package httpwire

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/quota"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

// ClientOf returns the client of a request. Without a client in its context and without a
// principal, that is the connection.
func ClientOf(r *http.Request, p mcp.Principal) quota.Client {
	return quota.ClientOf(r.Context(), p.ID, r.RemoteAddr)
}

// retryLimit is how long a client is asked to wait after a limit was exceeded.
const retryLimit = 5 * time.Second

// RefuseLimit answers a request that would exceed a limit: with status 429 if the limit is one of
// the client, and 503 otherwise. id is zero if the request has none. An error of another kind is
// answered with status 503.
func RefuseLimit(w http.ResponseWriter, id jsonrpc.ID, err error) {
	status := http.StatusServiceUnavailable
	if limit, ok := errors.AsType[*quota.LimitError](err); ok && limit.PerClient {
		status = http.StatusTooManyRequests
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(retryLimit.Seconds())))
	WriteDocument(w, status, jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}))
}

// WriteCounted is [WriteDocument] for a document whose bytes count until the client has taken them.
// If they would exceed a limit, it writes nothing and returns a [quota.LimitError].
func WriteCounted(w http.ResponseWriter, status int, body []byte, a quota.Account) error {
	if len(body) <= smallBody {
		WriteDocument(w, status, body)
		return nil
	}
	d := &documentWriter{ResponseWriter: w}
	lease := a.NewLease(d)
	if err := lease.Resize(int64(len(body))); err != nil {
		return err
	}
	defer lease.Release()
	defer d.finish()
	writeHead(w, status, len(body))
	writeInPieces(d, body, lease)
	return nil
}

// documentWriter is a response that can be cut off while it is written.
type documentWriter struct {
	http.ResponseWriter

	mu       sync.Mutex
	isCut    bool
	finished bool // the connection may belong to another request
}

// CutOff implements [quota.Waiter]. It makes the pending write fail.
func (d *documentWriter) CutOff(error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isCut = true
	if !d.finished {
		_ = http.NewResponseController(d.ResponseWriter).SetWriteDeadline(time.Unix(1, 0))
	}
}

// SetWriteDeadline implements the method that [http.ResponseController] looks for. It does not undo
// CutOff.
func (d *documentWriter) SetWriteDeadline(at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isCut {
		return nil
	}
	return http.NewResponseController(d.ResponseWriter).SetWriteDeadline(at)
}

// Unwrap returns the response, for [http.ResponseController].
func (d *documentWriter) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *documentWriter) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
}
