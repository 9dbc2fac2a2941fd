package control

import (
	"context"
	"encoding/json"
	"net/http"
)

// requestContext returns the context of a request. It ends with life, too. The caller must call
// end.
func requestContext(r *http.Request, life context.Context) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(life, cancel)
	return ctx, func() { stop(); cancel() }
}

// lineWriter answers a request with JSON values, one a line.
type lineWriter struct {
	out   *json.Encoder
	flush func() error
}

func newLineWriter(w http.ResponseWriter) lineWriter {
	return lineWriter{json.NewEncoder(w), http.NewResponseController(w).Flush}
}

// writeLine writes a line, and passes it on at once. It fails if the reader is gone.
func (l lineWriter) writeLine(value any) error {
	if err := l.out.Encode(value); err != nil {
		return err
	}
	return l.flush()
}
