package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// A server may refuse every revision after its own with status 400, where it should offer an older
// one. Then the program names the revision.
func TestServerRefusesNewRevisions(t *testing.T) {
	s := server.New("strict", "1", nil)
	server.Tool(s, "hello", "", func(context.Context, struct{}) (string, error) { return "hi", nil })
	handler := streamable.Handler(s, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		version := r.Header.Get("Mcp-Protocol-Version")
		if strings.Contains(string(body), "2026-07-28") || strings.Contains(string(body), "2025-11-25") || version > "2025-06-18" {
			http.Error(w, "unsupported protocol version", http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	if c, err := client.Dial(t.Context(), web.URL, nil); err == nil || !strings.Contains(err.Error(), "unsupported protocol version") {
		t.Errorf("%v, %v; want the words of the server", c, err)
	}
	c, err := client.Dial(t.Context(), web.URL, &client.Options{Wire: client.Wire{Revision: mcp.Revision20250618}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := client.Call[string](t.Context(), c, "hello", nil); err != nil || got != "hi" {
		t.Error(got, err)
	}
}
