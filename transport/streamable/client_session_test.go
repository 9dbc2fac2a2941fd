package streamable_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// If the server has lost the session, the client must open another one, however the server says so.
// A request is repeated only if it changes nothing.
func TestSessionDenied(t *testing.T) {
	for name, denial := range map[string]struct {
		status int
		body   string
		lost   bool
	}{
		"404":                        {404, "", true},
		"404 with an error":          {404, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`, true},
		"400, as in an example":      {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}`, true},
		"400 in plain words":         {400, "Invalid or missing session ID", true},
		"400 of something else":      {400, "Bad Request", false},
		"an error without an id":     {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32003,"message":"no such session"}}`, true},
		"an error of the handler":    {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"the session of the database is closed"}}`, false},
		"an error of the parameters": {400, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"session is not an argument"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			var denied atomic.Int32
			b := &fakeServer{session: "s"}
			b.post = func(w http.ResponseWriter, r *http.Request, m posted) bool {
				if m.ID == nil || m.Method == mcpwire.MethodInitialize || denied.Add(-1) < 0 {
					return false
				}
				w.WriteHeader(denial.status)
				fmt.Fprint(w, strings.ReplaceAll(denial.body, "%s", string(m.ID)))
				return true
			}
			c := mustDialFake(t, b.start(t), mcp.Revision20251125, client.Options{Restart: client.Restart{Base: time.Millisecond}})
			denied.Store(1)
			if err := ping(c); (err == nil) != denial.lost {
				t.Errorf("a list: %v", err)
			}
			denied.Store(1)
			_, err := callFake(t, c)
			if errors.Is(err, streamable.ErrSessionLost) != denial.lost || err == nil {
				t.Errorf("a call: %v", err)
			}
			if got, err := callFake(t, c); err != nil || got != "fine" {
				t.Errorf("the next one: %q, %v", got, err)
			}
			want := 1
			if denial.lost {
				want = 3
			}
			if n := b.count(mcpwire.MethodInitialize); n != want {
				t.Errorf("%d sessions were opened, want %d", n, want)
			}
		})
	}
}
