package httpwire_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// A client that does not read a large document must not hold up the handler for longer than the
// timeout.
func TestUnreadDocument(t *testing.T) {
	defer httpwire.SetUnreadTimeout(50 * time.Millisecond)()
	written := make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		httpwire.WriteDocument(w, http.StatusOK, make([]byte, 64<<20))
		written <- struct{}{}
	}))
	defer web.Close()
	conn, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-written:
	case <-time.After(time.Minute):
		t.Error("the handler is held up")
	}
}

// deadlineRecorder is a response that records its write deadlines.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (d *deadlineRecorder) SetWriteDeadline(at time.Time) error {
	d.deadlines = append(d.deadlines, at)
	return nil
}

// The connection is reused for further requests, so the deadline of a large document must be
// cleared after it.
func TestWriteDeadlineIsCleared(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
	httpwire.WriteDocument(w, http.StatusOK, make([]byte, 1<<20))
	n := len(w.deadlines)
	if n < 3 || w.deadlines[0].IsZero() || !w.deadlines[n-1].IsZero() {
		t.Errorf("write deadlines: %v, want one for each piece and then none", w.deadlines)
	}
	if w.Body.Len() != 1<<20 {
		t.Errorf("%d bytes were written", w.Body.Len())
	}
}
