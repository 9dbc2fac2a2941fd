package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/overconn"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// raw is an upstream that answers with given bytes.
func raw(tool, result string, arguments *string) mcp.Handler {
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return &mcp.Result{Raw: json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)}, nil
		case mcp.MethodListTools:
			return &mcp.Result{Raw: json.RawMessage(`{"tools":[` + tool + `]}`)}, nil
		case mcp.MethodCallTool:
			*arguments = string(rawjson.Lookup(req.Params, "arguments"))
			return &mcp.Result{Raw: json.RawMessage(result)}, nil
		}
		return nil, mcp.MethodNotFound(req.Method)
	})
}

// What the gateway does not know passes as it is, in tools, arguments and results.
func TestByteForByte(t *testing.T) {
	const (
		schema    = `{ "type":"object", "properties":{"n":{"type":"number","x-own":1.50}} }`
		extra     = `"vendor":{"b":1e2, "a":[1.50,"\u00e9\/"]}`
		block     = `{"text":"caf\u00e9 \/","type":"text","vendor":-0.0}`
		arguments = `{ "n":1.0, "big":9007199254740993, "text":"\u00e9\/" }`
		own       = `"example.com/own":{"n":1.50}`
	)
	for _, up := range mcp.Revisions() {
		var got string
		g, _ := over(t, hub.Definition{Name: "up", Options: client.Options{Wire: client.Wire{Revision: up}}, Target: raw(
			`{"name":"t","inputSchema":`+schema+`,`+extra+`}`, `{"content":[`+block+`],`+extra+`,"_meta":{`+own+`}}`, &got)})
		for _, down := range mcp.Revisions() {
			t.Run(fmt.Sprintf("%s behind %s", up, down), func(t *testing.T) {
				c := dial(t, g, client.Options{Wire: client.Wire{Revision: down}})
				for _, tt := range []struct {
					method, params string
					want           []string
				}{
					{mcp.MethodListTools, `{}`, []string{`"name":"up__t"`, schema, extra}},
					{mcp.MethodCallTool, `{"name":"up__t","arguments":` + arguments + `}`, []string{block, extra, own}},
				} {
					resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: tt.method, Params: json.RawMessage(tt.params)})
					if err != nil {
						t.Fatal(err)
					}
					for _, want := range tt.want {
						if !strings.Contains(string(resp.Raw), want) {
							t.Errorf("%s is not in %s", want, resp.Raw)
						}
					}
				}
				if got != arguments {
					t.Errorf("the arguments became %s", got)
				}
			})
		}
	}
}

// script is an upstream of 2025-11-25 over a stream. The test plays its tool.
type script struct {
	conn  transport.Conn
	mu    sync.Mutex
	heard map[string]int                  // requests and notifications, by method
	back  map[string]chan json.RawMessage // answers to its questions, by id
	call  func(s *script, id json.RawMessage)
}

// Dial implements [transport.Dialer].
func (s *script) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	near, far := net.Pipe()
	s.conn = stdio.Conn(far, 0)
	go s.run()
	return overconn.Connect(ctx, stdio.Conn(near, 0), in, "", o)
}

func (*script) Endpoint() string { return "" }

func (*script) String() string { return "a script" }

func (s *script) send(format string, args ...any) {
	_ = s.conn.Write(fmt.Appendf(nil, format, args...))
}

func (s *script) run() {
	defer s.conn.Close()
	for {
		frame, err := s.conn.Read()
		if err != nil {
			return
		}
		s.frame(frame)
	}
}

func (s *script) frame(frame []byte) {
	method, isCall := rawjson.String(rawjson.Lookup(frame, "method"))
	id := rawjson.Lookup(frame, "id")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isCall {
		s.back[string(id)] <- bytes.Clone(frame)
		return
	}
	s.heard[method]++
	switch {
	case method == mcpwire.MethodInitialize:
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"script","version":"1"}}}`, id)
	case method == mcp.MethodListTools:
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`, id)
	case method == mcp.MethodListResources:
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"resources":[{"name":"r","uri":"x://r"}]}}`, id)
	case method == mcpwire.MethodSubscribe && s.heard[method] > 1: // it has changed since it was asked for
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"once is enough"}}`, id)
	case method == mcpwire.MethodSubscribe, method == mcpwire.MethodUnsubscribe:
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
	case method == mcp.MethodCallTool:
		go s.call(s, id)
	case id != nil:
		s.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, id)
	}
}

func (s *script) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[method]
}

// asks asks, and returns where the answer comes.
func (s *script) asks(id, method, params string) <-chan json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back[id] = make(chan json.RawMessage, 1)
	s.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	return s.back[id]
}

// scripted returns a gateway over a script.
func scripted(t *testing.T, call func(s *script, id json.RawMessage)) (*gateway.Gateway, *script) {
	s := &script{heard: map[string]int{}, back: map[string]chan json.RawMessage{}, call: call}
	g, h := over(t, hub.Definition{Name: "up", Target: s, Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}}})
	if st := h.Upstream("up").State(); st.Status != hub.Ready {
		t.Fatal(st.Err)
	}
	return g, s
}

const form = `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`

// Several questions at once get their own answers.
func TestQuestionsAtOnce(t *testing.T) {
	g, _ := scripted(t, func(s *script, id json.RawMessage) {
		one := s.asks("7", mcp.MethodElicit, form)
		two := s.asks(`"seven"`, mcp.MethodListRoots, `{"_meta":{"progressToken":5,"own":1}}`)
		three := s.asks("-1", mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1}`)
		all := fmt.Sprintf("%s %s %s", rawjson.Lookup(<-one, "result"), rawjson.Lookup(<-two, "result"), rawjson.Lookup(<-three, "result"))
		out, _ := json.Marshal(all)
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, id, out)
	})
	const want = `{"action":"accept","content":{}} {"roots":[{"uri":"file:///home","name":"home"}]} {"role":"assistant"`
	for _, down := range []mcp.Revision{mcp.Revision20251125, mcp.Revision20260728} {
		c := dial(t, g, client.Options{
			Wire: client.Wire{Revision: down}, Answers: client.Answers{
				Roots: client.FixedRoots(mcp.Root{URI: "file:///home", Name: "home"}),
				Elicit: func(context.Context, *client.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: []byte("{}")}, nil
				},
				Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
					return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text("x")}}, nil
				},
			},
		})
		for range 20 {
			got, err := client.Call[string](t.Context(), c, "up__t", nil)
			if err != nil || !strings.HasPrefix(got, want) {
				t.Fatalf("%s: %s, %v", down, got, err)
			}
		}
	}
}

// A question that the upstream cancels, or does not wait for, is closed.
func TestQuestionTakenBack(t *testing.T) {
	g, _ := scripted(t, func(s *script, id json.RawMessage) {
		s.asks("1", mcp.MethodElicit, form)
		s.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"never mind"}]}}`, id)
	})
	for range 20 {
		req := request("ada", `{"name":"up__t","arguments":{}}`)
		res, err := g.ServeMCP(t.Context(), req)
		for err == nil && res.Type == mcp.ResultInputRequired { // it was quicker
			asked := res.Value.(*mcp.InputRequiredResult)
			var keys []string
			for key := range asked.InputRequests {
				keys = append(keys, key)
			}
			res, err = g.ServeMCP(t.Context(), answered(req, *asked.RequestState, keys...))
		}
		if got := text(t, res, err); got != "never mind" {
			t.Error(got)
		}
	}
}

// A question outside of a call is refused, and so is a request beyond the protocol.
func TestQuestionsOfNobody(t *testing.T) {
	g, s := scripted(t, func(s *script, id json.RawMessage) {
		answer := <-s.asks("1", "example/ask", `{}`)
		s.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`, id, rawjson.Lookup(rawjson.Lookup(answer, "error"), "code"))
	})
	answer := <-s.asks("2", mcp.MethodElicit, form)
	if why, _ := rawjson.String(rawjson.Lookup(rawjson.Lookup(answer, "error"), "message")); !strings.Contains(why, "it is not clear which client to ask") {
		t.Errorf("%s", answer)
	}
	res, err := g.ServeMCP(t.Context(), request("ada", `{"name":"up__t","arguments":{}}`))
	if got := text(t, res, err); got != "-32601" {
		t.Error(got)
	}
}

// Subscriptions of several clients are one at the upstream, and it ends with the last of them.
// Resources that the upstream refuses are not acknowledged.
func TestSubscribe(t *testing.T) {
	g, s := scripted(t, nil)
	watch := func() *client.Watch {
		w, err := dial(t, g, client.Options{}).Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"x://r", "x://no"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Acknowledged().ResourceSubscriptions; !slices.Equal(got, []string{"x://r"}) {
			t.Errorf("acknowledged: %v", got)
		}
		return w
	}
	one, two := watch(), watch()
	if n := s.count(mcpwire.MethodSubscribe); n != 1 {
		t.Errorf("%d subscriptions at the upstream", n)
	}
	s.send(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://r","title":"T"}}`)
	for _, w := range []*client.Watch{one, two} {
		for change, err := range w.Changes() { // which closes it
			if err != nil || change.URI != "x://r" || !strings.Contains(string(change.Params), `"title":"T"`) {
				t.Errorf("%+v, %v", change, err)
			}
			break
		}
	}
	until(t, "the upstream receives the end", func() bool { return s.count(mcpwire.MethodUnsubscribe) == 1 })
	// Now it refuses.
	_, err := dial(t, g, client.Options{}).Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"x://r"}})
	if !errors.Is(err, client.ErrNothingToWatch) {
		t.Errorf("what the upstream refuses is promised: %v", err)
	}
}

// An error of an upstream keeps its code, message and data.
func TestErrorsPass(t *testing.T) {
	for _, e := range []*mcp.Error{
		{Code: -31000, Message: "own", Data: json.RawMessage(`{"a":1.50}`)}, {Code: jsonrpc.CodeInternal, Message: "broken"},
		{Code: jsonrpc.CodeInvalidParams, Message: "no", Data: json.RawMessage(`"x"`)},
	} {
		up := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				return nil, e
			}
			return raw(`{"name":"t","inputSchema":{"type":"object"}}`, "", nil).ServeMCP(ctx, req)
		})
		for _, r := range []mcp.Revision{mcp.Revision20241105, mcp.Revision20260728} {
			g, _ := over(t, hub.Definition{Name: "up", Target: up, Options: client.Options{Wire: client.Wire{Revision: r}}})
			_, err := client.Call[string](t.Context(), dial(t, g, client.Options{}), "up__t", nil)
			got, ok := errors.AsType[*mcp.Error](err)
			if !ok || got.Code != e.Code || got.Message != e.Message || string(got.Data) != string(e.Data) {
				t.Errorf("%+v became %+v", e, err)
			}
		}
	}
}

// Clients get log messages of the level that they asked for.
func TestLogLevels(t *testing.T) {
	up := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		if req.Method == mcp.MethodCallTool {
			for _, level := range mcpwire.LoggingLevels() {
				_ = req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationMessage, Params: fmt.Appendf(nil, `{"level":%q,"data":1}`, level)})
			}
		}
		return raw(`{"name":"t","inputSchema":{"type":"object"}}`, `{"content":[]}`, new(string)).ServeMCP(ctx, req)
	})
	for _, r := range []mcp.Revision{mcp.Revision20241105, mcp.Revision20260728} {
		g, _ := over(t, hub.Definition{Name: "up", Target: up, Options: client.Options{Wire: client.Wire{Revision: r}}})
		for _, level := range []mcp.LoggingLevel{mcp.LevelDebug, mcp.LevelWarning, mcp.LevelEmergency, ""} {
			want := 0
			if level != "" {
				want = len(mcpwire.LoggingLevels()) - level.Severity()
			}
			p := &peer{}
			req := request("ada", `{"name":"up__t","arguments":{}}`)
			req.LogLevel, req.Peer = level, p
			if _, err := g.ServeMCP(t.Context(), req); err != nil || p.count() != want {
				t.Errorf("%s, at %q: %d messages, %v", r, level, p.count(), err)
			}
		}
	}
}

// peer counts notifications.
type peer struct {
	mu sync.Mutex
	n  int
}

func (p *peer) Notify(context.Context, mcp.Notification) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return nil
}

func (p *peer) Change(context.Context, mcp.Notification) error { return errors.ErrUnsupported }

func (p *peer) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}
