package streamable_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// discardInbound ignores everything that a server starts itself.
type discardInbound struct{}

func (discardInbound) ServeMCP(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	return nil, mcp.MethodNotFound(req.Method)
}
func (discardInbound) Notify(mcp.Notification) {}
func (discardInbound) Down(error)              {}

// silentStream is a legacy server that never sends the header of its session stream.
func silentStream(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	answer := func(status int, body string) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
	if r.Body == nil {
		return answer(http.StatusOK, "")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	_ = json.Unmarshal(body, &msg)
	switch msg.Method {
	case "initialize":
		return answer(http.StatusOK, `{"jsonrpc":"2.0","id":`+string(msg.ID)+`,"result":{"protocolVersion":"2025-11-25",
			"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`)
	case "notifications/initialized":
		return answer(http.StatusAccepted, "")
	}
	return answer(http.StatusBadRequest, "")
}

// Dial does not wait for the header of the session stream. Subscriptions and calls do, because the
// server may send changes and questions there: together half a second.
func TestLateHeaderOfTheSessionStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		u := streamable.URL{URL: "http://server.example/mcp", Client: &http.Client{Transport: roundTripFunc(silentStream)}}
		c, err := u.Dial(t.Context(), discardInbound{}, transport.ClientOptions{Verdicts: new(transport.Verdicts)})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Dial took %v", took)
		}
		if _, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"t"}`)}); err == nil {
			t.Error("the call has succeeded")
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("a call waited %v for the stream, want 500ms", took)
		}
		acknowledged := make(chan time.Duration, 1)
		go func() {
			_, _ = c.RoundTrip(t.Context(), &mcp.Request{
				Method: mcp.MethodListen, Params: json.RawMessage(`{"notifications":{"toolsListChanged":true}}`),
				Notify: func(mcp.Notification) { acknowledged <- time.Since(began) },
			})
		}()
		if took := <-acknowledged; took != 500*time.Millisecond {
			t.Errorf("a call and a subscription waited %v for the stream, want 500ms", took)
		}
	})
}
