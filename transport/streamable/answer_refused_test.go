package streamable_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// If a load balancer brings the answer to a legacy question to another replica, the call fails at
// once and says why. Without that it would wait for its limit, here forever.
func TestRefusedAnswerFailsItsCall(t *testing.T) {
	t.Parallel()
	keys := new(mcp.Keys)
	replica := func() http.Handler {
		s := server.New("replica", "1", &server.Options{Keys: keys})
		server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
			who, err := server.Ask[person](ctx, "who", "Who?")
			return who.Name, err
		})
		server.Tool(s, "say", "Speaks.", func(context.Context, struct{}) (string, error) { return "fine", nil })
		h := streamable.Handler(s, &streamable.Options{ServerOptions: transport.ServerOptions{AskTimeout: time.Hour}})
		t.Cleanup(func() { _ = h.Shutdown(context.Background()) })
		return h
	}
	one, two := replica(), replica()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte(`"action"`)) || bytes.Contains(body, []byte("notifications/cancelled")) {
			two.ServeHTTP(w, r)
			return
		}
		one.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	for _, revision := range []mcp.Revision{mcp.Revision20251125, mcp.Revision20250618} {
		c, err := client.Dial(t.Context(), web.URL, &client.Options{
			Answers: client.Answers{Elicit: answerName}, Wire: client.Wire{Revision: revision}, Limits: client.Limits{Total: polltest.Limit},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Call[string](t.Context(), c, "ask", nil)
		if err == nil || !strings.Contains(err.Error(), "did not accept the answer to its elicitation/create") || !strings.Contains(err.Error(), "sticky sessions") {
			t.Errorf("%s: %v", revision, err)
		}
		if got, err := client.Call[string](t.Context(), c, "say", nil); err != nil || got != "fine" {
			t.Errorf("%s: the call after the refused answer: %q, %v", revision, got, err)
		}
		c.Close()
	}
}
