package control_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/internal/httpwire"
)

// For the limits, the process behind a connection of the socket is the client, whatever name it
// gives.
func TestProcessIsTheClient(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "dowel.sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ConnContext: control.ConnContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, httpwire.ClientOf(r, control.Principal(r)).Name)
	})}
	go func() { _ = server.Serve(l) }() // returns when the server is closed
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://dowel/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(control.HeaderClient, "cursor")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if name, err := io.ReadAll(resp.Body); err != nil || string(name) != fmt.Sprint("process ", os.Getpid()) {
		t.Errorf("%s, %v", name, err)
	}
}
