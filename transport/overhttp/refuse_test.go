package overhttp_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/transport/overhttp"
)

// A document that the client does not read holds up its handler no longer than it may take for a piece of it.
func TestDocumentThatIsNeverRead(t *testing.T) {
	defer overhttp.SetUnread(50 * time.Millisecond)()
	written := make(chan struct{}, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		overhttp.Respond(w, http.StatusOK, make([]byte, 64<<20))
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
	case <-time.After(10 * time.Second):
		t.Error("the handler is held up")
	}
}

// The deadline of a large document is not that of what follows it on the connection.
func TestDocumentThatIsRead(t *testing.T) {
	defer overhttp.SetUnread(50 * time.Millisecond)()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		overhttp.Respond(w, http.StatusOK, make([]byte, 1<<20))
	}))
	defer web.Close()
	for range 3 {
		resp, err := web.Client().Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n != 1<<20 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
