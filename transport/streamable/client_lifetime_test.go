package streamable_test

import (
	"context"
	"errors"
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

// hangingServer is a modern server inside a test bubble. It never answers calls of the tool slow:
// it sends no header, or a header and no body.
type hangingServer struct {
	header    bool
	abandoned chan struct{} // gets a value when a request that hangs is given up
}

func (s *hangingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := func(media string, body io.ReadCloser) *http.Response {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: body, Request: r}
	}
	switch text := string(raw); {
	case strings.Contains(text, mcp.MethodDiscover):
		return answer("application/json", io.NopCloser(strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`))), nil
	case !strings.Contains(text, `"slow"`):
		id := text[strings.Index(text, `"id":`)+5:]
		id = id[:strings.IndexAny(id, ",}")]
		return answer("application/json", io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":`+id+`,"result":{"resultType":"complete","content":[]}}`))), nil
	case s.header:
		body, end := io.Pipe()
		context.AfterFunc(r.Context(), func() { end.CloseWithError(r.Context().Err()) })
		return answer("text/event-stream", &hangingBody{body, s}), nil
	}
	<-r.Context().Done()
	s.abandoned <- struct{}{}
	return nil, r.Context().Err()
}

type hangingBody struct {
	*io.PipeReader
	server *hangingServer
}

func (b *hangingBody) Close() error {
	select {
	case b.server.abandoned <- struct{}{}:
	default:
	}
	return b.PipeReader.Close()
}

// A request to a server that never answers ends after the default limit. Requests at the same time
// and later do not.
func TestDefaultLimit(t *testing.T) {
	for _, tt := range []struct {
		name       string
		header     bool
		cancelable bool
	}{{"no header", false, false}, {"no header, cancelable", false, true}, {"no body", true, false}, {"no body, cancelable", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &hangingServer{header: tt.header, abandoned: make(chan struct{}, 1)}
				d := streamable.URL{URL: "http://hang.test/mcp", Client: &http.Client{Transport: server}}
				c, err := d.Dial(t.Context(), discardInbound{}, transport.ClientOptions{Revision: mcp.Revision20260728})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				ctx := context.Background()
				if tt.cancelable {
					var cancel context.CancelFunc
					ctx, cancel = context.WithCancel(ctx)
					defer cancel()
				}
				call := func(name string) error {
					_, err := c.RoundTrip(ctx, &mcp.Request{Method: mcp.MethodCallTool, Params: []byte(`{"name":"` + name + `"}`)})
					return err
				}
				slow := make(chan error, 1)
				began := time.Now()
				go func() { slow <- call("slow") }()
				for time.Since(began) < 59*time.Minute {
					time.Sleep(10 * time.Minute)
					if err := call("quick"); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-slow; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, mcp.ErrConnection) {
					t.Errorf("got %v, want a timeout", err)
				}
				if took := time.Since(began); took < time.Hour || took > 61*time.Minute {
					t.Errorf("ended after %v, want an hour", took)
				}
				<-server.abandoned
				if err := call("quick"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
