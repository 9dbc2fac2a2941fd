package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

// namedLogin is a RoundTripper that logs in.
type namedLogin struct {
	http.RoundTripper
	user atomic.Pointer[string]
}

func (l *namedLogin) LoginID() string { return *l.user.Load() }

// A WebSocket keeps the login of its handshake after the user has changed.
func TestLoginOfAWebSocket(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(websocket.Handler(server.New("notes", "1", nil), nil))
	defer web.Close()
	login := &namedLogin{RoundTripper: http.DefaultTransport}
	h := HTTP{Client: &http.Client{Transport: login}}
	to := "ws" + strings.TrimPrefix(web.URL, "http")
	for _, target := range []any{to, websocket.URL{URL: to, Client: h.Client}} {
		login.user.Store(new("ann"))
		c, err := Dial(t.Context(), target, &Options{HTTP: h})
		if err != nil {
			t.Fatal(err)
		}
		login.user.Store(new("ben"))
		if got := c.loginID(); got != "ann" {
			t.Errorf("%T: the login is %q", target, got)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
