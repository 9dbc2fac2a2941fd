package streamable_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/polltest"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/streamable"
)

// Shutdown must accept answers to the questions of calls in flight, but no new requests.
func TestAnswerDuringShutdown(t *testing.T) {
	endpoint, web := serve(t, testServer(nil))
	url := web.URL + "/mcp"
	in := inSession(open(t, url, mcp.Revision20251125), mcp.Revision20251125)
	lines, question := beginAsk(t, url, in)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() { done <- endpoint.Shutdown(ctx) }()
	polltest.Until(t, "nothing new is taken", func() bool { return send(t, "POST", url, pingBody, in...).status == 503 })
	answer := `{"jsonrpc":"2.0","id":` + question + `,"result":{"action":"accept","content":{"name":"Ada"}}}`
	if got := send(t, "POST", url, answer, in...); got.status != 202 {
		t.Errorf("the answer: %d %s", got.status, got.body)
	}
	if got := until(t, lines, "data:"); !strings.Contains(got, "hello Ada") {
		t.Errorf("got %s", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// When its context ends, Shutdown must cancel the calls of both eras. It must not wait for handlers
// that ignore that.
func TestShutdownIsBounded(t *testing.T) {
	gate, begun, ended := make(chan struct{}), make(chan struct{}, 10), make(chan error, 10)
	s := server.New("stubborn", "1", &server.Options{})
	server.Tool(s, "deaf", "Does not care.", func(context.Context, struct{}) (string, error) {
		begun <- struct{}{}
		<-gate
		return "", nil
	})
	server.Tool(s, "wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return "", context.Cause(ctx)
	})
	endpoint, web := serve(t, s)
	defer web.CloseClientConnections()
	defer close(gate)
	answers := make(chan error, 10)
	for _, r := range bothEras {
		for _, tool := range []string{"deaf", "wait", "deaf"} {
			c := dial(t, web.URL+"/mcp", r, client.Options{})
			go func() {
				_, err := client.Call[string](t.Context(), c, tool, nil)
				answers <- err
			}()
			<-begun
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var err error
	polltest.Within(t, func() { err = endpoint.Shutdown(ctx) })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	for range bothEras {
		if err := <-ended; err == nil {
			t.Error("a call was not cancelled")
		}
	}
	if err := <-answers; err == nil {
		t.Error("a call that was cancelled has a result")
	}
}

// A call that Shutdown cuts off must be answered with the reason, in both eras.
func TestShutdownSaysWhy(t *testing.T) {
	begun := make(chan struct{}, 10)
	s := testServer(nil)
	endpoint, web := serve(t, mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return s.ServeMCP(ctx, req)
		}
		begun <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}))
	endpoint.SetAnswerGrace(polltest.Limit)
	answers := make(chan error, 10)
	for _, r := range bothEras {
		c := dial(t, web.URL+"/mcp", r, client.Options{})
		go func() {
			_, err := client.Call[string](t.Context(), c, "any", nil)
			answers <- err
		}()
		<-begun
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := endpoint.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	for range bothEras {
		if err := <-answers; err == nil || !strings.Contains(err.Error(), "the server is shutting down, and the call was not done in time") {
			t.Errorf("%v", err)
		}
	}
}

// A call that Shutdown has cancelled has half a second for its answer, in both eras.
func TestAnswersInShutdownGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testServer(nil)
		endpoint := streamable.Handler(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return s.ServeMCP(ctx, req)
			}
			<-ctx.Done()
			time.Sleep(450 * time.Millisecond)
			return nil, context.Cause(ctx)
		}), &streamable.Options{StreamAtOnce: true}) // a document is sent even after its session has ended
		session := post(endpoint, initializeBody(mcp.Revision20251125, "")).Header().Get("Mcp-Session-Id")
		params := `"name":"any","arguments":{}`
		var calls sync.WaitGroup
		for name, call := range map[string]func() *httptest.ResponseRecorder{
			"legacy": func() *httptest.ResponseRecorder {
				return post(endpoint, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{`+params+`}}`, inSession(session, mcp.Revision20251125)...)
			},
			"modern": func() *httptest.ResponseRecorder {
				return post(endpoint, modernBody("tools/call", params), modernFields("tools/call", "Mcp-Name", "any")...)
			},
		} {
			calls.Go(func() {
				if got := call().Body.String(); !strings.Contains(got, "the server is shutting down, and the call was not done in time") {
					t.Errorf("%s: %s", name, got)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := endpoint.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v", err)
		}
		calls.Wait()
	})
}

// post makes a POST by a direct call of the endpoint.
func post(endpoint http.Handler, body string, fields ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	endpoint.ServeHTTP(w, r)
	return w
}

// At an address that other machines reach, host names that are not listed must be refused: a web
// page could make them lead there.
func TestNamesOfAPublicAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint := streamable.Handler(testServer(nil), nil)
	public := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} // a test cannot rely on a real address other than loopback
		endpoint.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at))))
	})}
	go func() { _ = public.Serve(listener) }()
	t.Cleanup(func() {
		_ = public.Close()
		_ = endpoint.Shutdown(context.Background())
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for host, status := range map[string]int{"192.0.2.1:" + port: 200, "[2001:db8::1]": 200, "localhost": 200, "evil.example:" + port: 403} {
		got := send(t, "POST", "http://127.0.0.1:"+port+"/mcp", listBody, append(modernFields("tools/list"), "Host", host)...)
		if got.status != status {
			t.Errorf("%s: %d, want %d", host, got.status, status)
		}
	}
}

// Arguments of a wrong type must reach the tool, although they should be mirrored into header
// fields.
func TestMirroredArgumentOfAWrongType(t *testing.T) {
	_, web := serve(t, testServer(nil))
	c := dial(t, web.URL+"/mcp", mcp.LatestRevision, client.Options{})
	if _, err := client.All(c.Tools(t.Context())); err != nil { // so that the client knows the mirrored arguments
		t.Fatal(err)
	}
	for _, arguments := range []string{`{"region":{"a":1}}`, `{"level":1.5}`, `{"level":[1]}`} {
		res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "route", Arguments: []byte(arguments)})
		if err != nil || !res.IsError {
			t.Errorf("%s: %+v, %v", arguments, res, err)
		}
	}
}
