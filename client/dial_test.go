package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/stdio"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

func TestTargets(t *testing.T) {
	h := tools(returns(done))
	inner := connect(t, h)
	near, far := net.Pipe()
	served := make(chan error)
	go func() {
		served <- overconn.Serve(context.Background(), stdio.Conn(far, 0), h, transport.ServerOptions{})
	}()
	sockets := websocket.Handler(h, nil)
	web := httptest.NewServer(sockets)
	defer web.Close()
	for _, test := range []struct {
		name   string
		target any
	}{
		{"handler", h},
		{"URL of WebSocket", "WS" + strings.TrimPrefix(web.URL, "http")},
		{"dialer", &fakeDialer{handler: h}},
		{"transport", inner},
		{"stream", near},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := client.Dial(t.Context(), test.target, &client.Options{Wire: client.Wire{Tap: mcptest.ClientTap(t, mcptest.SentOnly())}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.Server().Info; got.Name != "fake" || got.Version != "1" {
				t.Errorf("the server is %+v", got)
			}
			if c.Server().Revision != mcp.LatestRevision || c.Server().Instructions != "be kind" || c.Server().Capabilities.Tools == nil {
				t.Errorf("revision %s, instructions %q, capabilities %+v", c.Server().Revision, c.Server().Instructions, c.Server().Capabilities)
			}
			if got, err := client.Call[string](t.Context(), c, "t", nil); got != "done" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if err := <-served; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, mcp.ErrConnection) {
		t.Error(err)
	}
	if got := inner.State().Status; got != client.Closed {
		t.Errorf("a transport that became the client's is %v after Close", got)
	}
}

func TestNoTargets(t *testing.T) {
	for _, test := range []struct {
		target any
		want   string
	}{
		{nil, "target is nil"},
		{"http://127.0.0.1:1/mcp", "refused"},
		{"HTTP://%zz", "not a URL"},
		{"npx -y server", "[]string"},
		{[]string{}, "empty"},
		{3, "a int is not a target"},
		{[]string{"no-such-program-anywhere"}, "no-such-program-anywhere"},
		{stdio.Command{Path: "/no/such/program"}, "/no/such/program"},
	} {
		c, err := client.Dial(t.Context(), test.target, nil)
		if err == nil || c != nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want an error with %q", test.target, err, test.want)
		}
	}
}

func TestReadyTransportIsNotReplaced(t *testing.T) {
	l := &fakeDialer{handler: tools(returns(done))}
	ready, err := l.Dial(t.Context(), nopInbound{}, transport.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), ready, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l.loseConnection("gone")
	_, err = client.Call[string](t.Context(), c, "t", nil)
	mustBe(t, err, mcp.ErrConnection)
	if err := c.Reconnect(t.Context()); err == nil {
		t.Error("it was dialed again")
	}
	if _, err = client.All(c.Tools(t.Context())); !errors.Is(err, mcp.ErrConnection) || l.count() != 1 {
		t.Errorf("got %v after %d dials", err, l.count())
	}
}

type nopInbound struct{ mcp.Handler }

func (nopInbound) Notify(mcp.Notification) {}
func (nopInbound) Down(error)              {}

func TestAServerThatDoesNotSayWhoItIs(t *testing.T) {
	h := tools(returns(done))
	h[mcp.MethodDiscover] = func(context.Context, *mcp.Request) (*mcp.Result, error) {
		return nil, mcp.MethodNotFound("server/discover")
	}
	c := dialFake(t, &fakeDialer{name: "mute", handler: h}, client.Options{})
	if _, err := client.Call[string](t.Context(), c, "t", nil); err != nil {
		t.Error(err)
	}
	_, err := c.Discover(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "fake server mute: server/discover: ") {
		t.Errorf("got %v", err)
	}
}

func TestDiscover(t *testing.T) {
	eras(t, func(t *testing.T, revision mcp.Revision) {
		c := connect(t, handlers{}, client.Options{Wire: client.Wire{Revision: revision}})
		s, err := c.Discover(t.Context())
		if err != nil || s.Info.Name != "fake" || s.Revision != revision || s.Instructions != "be kind" || !s.Capabilities.Tools.ListChanged {
			t.Errorf("got %+v, %v", s, err)
		}
	})
}

func TestRoundTripIsRaw(t *testing.T) {
	l := &fakeDialer{handler: tools(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		return asks(`{"requestState":"s"}`), nil
	})}
	c := dialFake(t, l, client.Options{})
	resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: json.RawMessage(`{"name":"t"}`)})
	if err != nil || resp.Type != mcp.ResultInputRequired || string(resp.Raw) != `{"requestState":"s"}` {
		t.Errorf("got %+v, %v", resp, err)
	}
}

func TestDo(t *testing.T) {
	type params struct {
		N int `json:"n"`
	}
	type result struct {
		Twice int `json:"twice"`
	}
	h := handlers{"acme/twice": func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		if param(req, "n") != "4" {
			return nil, mcp.InvalidParams("n is %s", param(req, "n"))
		}
		return raw(`{"twice":8,"more":1}`), nil
	}, "acme/meta": func(_ context.Context, req *mcp.Request) (*mcp.Result, error) { return raw(string(req.Params)), nil }}
	c := dialWire(t, h, client.Options{})
	got, err := client.Do(t.Context(), c, mcp.Method[params, result]{Name: "acme/twice"}, params{4})
	if err != nil || got.Twice != 8 {
		t.Errorf("got %+v, %v", got, err)
	}
	whole, err := client.Do(t.Context(), c, mcp.Method[json.RawMessage, json.RawMessage]{Name: "acme/twice"}, json.RawMessage(`{"n":4}`))
	if err != nil || string(whole) != `{"twice":8,"more":1}` {
		t.Errorf("got %s, %v", whole, err)
	}
	meta := client.CallOptions{Meta: mcp.Meta{"b": 2, "c": 3}}
	sent, err := client.Do(t.Context(), c, mcp.Method[json.RawMessage, json.RawMessage]{Name: "acme/meta"}, json.RawMessage(`{"_meta":{"a":1,"b":1},"n":1}`), meta)
	if want := `{"n":1,"_meta":{"a":1,"b":2,"c":3}}`; err != nil || string(sent) != want {
		t.Errorf("got %s, %v; want %s", sent, err, want)
	}
	for _, bad := range []string{``, `{`, `[]`} {
		if _, err := client.Do(t.Context(), c, mcp.Method[json.RawMessage, json.RawMessage]{Name: "acme/twice"}, json.RawMessage(bad)); err == nil {
			t.Errorf("parameters %q were sent", bad)
		}
	}
}
