package serving_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
)

// testServer is a handler without package server: each tool does one thing that the edge has to
// deal with.
type testServer struct {
	mu     sync.Mutex
	log    []string // requests and events that the handlers saw
	peers  []mcp.Peer
	listen map[int]chan func(mcp.Peer) bool // open subscriptions; false ends one
	next   int
	notes  []mcp.Notification
	gate   chan struct{} // the tool "gate" waits for it, and server/discover if hold is set
	hold   bool
	broken bool // server/discover fails
}

func newTestServer() *testServer {
	return &testServer{listen: map[int]chan func(mcp.Peer) bool{}, gate: make(chan struct{})}
}

// restart forgets everything, and returns what the handlers saw.
func (w *testServer) restart() (seen string) {
	seen = w.seen()
	w.log, w.peers, w.notes, w.next = nil, nil, nil, 0
	w.listen, w.gate = map[int]chan func(mcp.Peer) bool{}, make(chan struct{})
	return seen
}

func (w *testServer) saw(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *testServer) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.log, "\n")
}

func (w *testServer) NotifyMCP(_ context.Context, n mcp.Notification) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, n)
	if n.Method == "notifications/panic" {
		panic("notified")
	}
}

func text(format string, args ...any) (*mcp.Result, error) {
	return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(fmt.Sprintf(format, args...))}}}, nil
}

func (w *testServer) ServeMCP(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	switch req.Method {
	case mcp.MethodDiscover:
		return w.discover(ctx)
	case mcp.MethodListen:
		return w.subscribe(ctx, req)
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource:
		return w.call(ctx, req)
	case mcp.MethodListTools:
		return &mcp.Result{Value: &mcp.ListToolsResult{}, Cache: mcp.Cache{TTL: 1500e6, Scope: mcp.CachePublic}}, nil
	case mcp.MethodListPrompts:
		return &mcp.Result{Value: &mcp.ListPromptsResult{}, Cache: mcp.Cache{TTL: -time.Second}}, nil
	case mcp.MethodComplete: // asks although completion/complete does not allow it
		return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{RequestState: new("s")}}, nil
	}
	return nil, mcp.MethodNotFound(req.Method)
}

func (w *testServer) discover(ctx context.Context) (*mcp.Result, error) {
	if w.broken {
		return nil, errors.New("broken")
	}
	if w.hold {
		select {
		case <-w.gate:
		case <-ctx.Done():
			w.saw("discover: %v", context.Cause(ctx))
			return nil, context.Cause(ctx)
		}
	}
	return &mcp.Result{
		ServerInfo: json.RawMessage(`{"name":"w","version":"1","title":"W"}`),
		Value: &mcp.DiscoverResult{SupportedVersions: mcp.Revisions(), Instructions: "be kind", Capabilities: mcp.ServerCapabilities{
			Tools: &mcp.ListCapability{ListChanged: true}, Logging: &struct{}{}, Completions: &struct{}{},
			Resources: &mcp.ResourcesCapability{Subscribe: true, ListChanged: true}, Prompts: &mcp.ListCapability{},
		}},
	}, nil
}

// refuseListen ends a subscription in the way that the URI says.
func refuseListen(uri string) (*mcp.Result, error) {
	_, how, _ := strings.Cut(uri, "?")
	switch how {
	case "unknown":
		return nil, mcp.ResourceNotFound(uri)
	case "modern":
		return nil, mcp.Errorf(mcp.CodeHeaderMismatch, "m")
	case "secret":
		return nil, errors.New("secret")
	case "method":
		return nil, mcp.MethodNotFound(mcp.MethodListen)
	case "end":
		return &mcp.Result{}, nil
	}
	return nil, mcp.InvalidParams("no")
}

func (w *testServer) subscribe(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.ListenParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%v", err)
	}
	if slices.Contains(p.Notifications.ResourceSubscriptions, "x://refused") {
		p.Notifications.ResourceSubscriptions = nil
	}
	if uris := p.Notifications.ResourceSubscriptions; len(uris) > 0 && strings.HasPrefix(uris[0], "x://failing") {
		return refuseListen(uris[0])
	}
	w.mu.Lock()
	w.next++
	n := w.next
	changes := make(chan func(mcp.Peer) bool)
	w.listen[n] = changes
	w.peers = append(w.peers, req.Peer)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.listen, n)
		w.mu.Unlock()
	}()
	acked, _ := mcp.Encode(mcp.ListenParams{Notifications: p.Notifications})
	if err := req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationAcknowledged, Params: acked}); err != nil {
		return nil, err
	}
	for {
		select {
		case change := <-changes:
			if !change(req.Peer) {
				return &mcp.Result{}, nil
			}
		case <-ctx.Done():
			w.saw("listen: %v", context.Cause(ctx))
			return nil, context.Cause(ctx)
		}
	}
}

// each runs a change on every open subscription, oldest first.
func (w *testServer) each(change func(mcp.Peer) bool) {
	w.mu.Lock()
	open := w.listen
	keys := slices.Sorted(maps.Keys(open))
	channels := make([]chan func(mcp.Peer) bool, len(keys))
	for i, k := range keys {
		channels[i] = open[k]
	}
	w.mu.Unlock()
	for _, c := range channels {
		time.Sleep(time.Millisecond) // of the bubble: until nothing else happens
		c <- change
	}
	time.Sleep(time.Millisecond)
}

func (w *testServer) call(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
	var p mcp.CallToolParams
	if err := mcp.Decode(req.Params, &p); err != nil {
		return nil, mcp.InvalidParams("%v", err)
	}
	if p.Name == "" {
		uri, _ := rawjson.String(rawjson.Lookup(req.Params, "uri"))
		p.Name = strings.TrimPrefix(uri, "x://")
	}
	if run, ok := tools[p.Name]; ok {
		return run(w, ctx, req, p)
	}
	return nil, mcp.InvalidParams("unknown tool %q", p.Name)
}

// ask answers input_required with the questions, raw by key.
func ask(state *string, questions map[string]string) (*mcp.Result, error) {
	r := &mcp.InputRequiredResult{RequestState: state, InputRequests: map[string]mcp.InputRequest{}}
	for key, q := range questions {
		method, params, _ := strings.Cut(q, " ")
		r.InputRequests[key] = mcp.InputRequest{Method: method}
		if params != "" {
			r.InputRequests[key] = mcp.InputRequest{Method: method, Params: json.RawMessage(params)}
		}
	}
	return &mcp.Result{Type: mcp.ResultInputRequired, Value: r}, nil
}

const form = `elicitation/create {"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`

type tool func(w *testServer, ctx context.Context, req *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error)

var tools = map[string]tool{}

func init() {
	maps.Copy(tools, map[string]tool{
		"echo": func(w *testServer, _ context.Context, req *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			return text("%s", p.Arguments)
		},
		"request": func(w *testServer, _ context.Context, req *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			return text("%s|%s|%s|%s|%s|%s", req.Revision, req.ClientCapabilities, req.ClientInfo, req.ProgressToken, req.LogLevel, req.Principal.ID)
		},
		"hang": func(w *testServer, ctx context.Context, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
			<-ctx.Done()
			w.saw("hang: %v (canceled: %v)", context.Cause(ctx), errors.Is(context.Cause(ctx), context.Canceled))
			return text("too late")
		},
		"gate": func(w *testServer, ctx context.Context, _ *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
			<-w.gate
			w.saw("gate: %v", context.Cause(ctx))
			return text("through")
		},
		"panic": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			panic("boom secret")
		},
		"plain error": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return nil, errors.New("secret")
		},
		"nothing": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return nil, nil
		},
		"empty": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return &mcp.Result{}, nil
		},
		"error": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			var e struct {
				Code int
				Data json.RawMessage
			}
			_ = json.Unmarshal(p.Arguments, &e)
			return nil, fmt.Errorf("wrapped: %w", &mcp.Error{Code: e.Code, Message: "m", Data: e.Data})
		},
		"capable": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return nil, fmt.Errorf("wrapped: %w", &mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}})
		},
		"raw": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			return &mcp.Result{Raw: p.Arguments}, nil
		},
		"broken": func(_ *testServer, ctx context.Context, req *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			var in struct{ Field, JSON string }
			_ = json.Unmarshal(p.Arguments, &in)
			raw := json.RawMessage(strings.ReplaceAll(in.JSON, "FF", "\xff"))
			switch in.Field {
			case "structured":
				return &mcp.Result{Value: &mcp.CallToolResult{StructuredContent: raw}}, nil
			case "input":
				return &mcp.Result{Value: &mcp.CallToolResult{Content: []mcp.Content{{Type: mcp.ContentToolUse, ToolUse: &mcp.ToolUse{Input: raw}}}}}, nil
			case "info":
				return &mcp.Result{ServerInfo: raw}, nil
			case "data":
				return nil, &mcp.Error{Code: 7, Message: "m", Data: raw}
			case "notification":
				err := req.Peer.Notify(ctx, mcp.Notification{Method: "acme/x", Params: raw})
				return text("%v", err != nil)
			}
			return &mcp.Result{Raw: raw}, nil
		},
		"raw with info": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			return &mcp.Result{Raw: p.Arguments, ServerInfo: json.RawMessage(`{"name":"w","version":"1"}`)}, nil
		},
		"value": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			var v struct{ Of string }
			_ = json.Unmarshal(p.Arguments, &v)
			return &mcp.Result{Value: values[v.Of]}, nil
		},
		"progress": func(_ *testServer, ctx context.Context, req *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
			for i := range 2 {
				params := fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":"m"}`, req.ProgressToken, i+1)
				if err := req.Peer.Notify(ctx, mcp.Notification{Method: mcp.NotificationProgress, Params: []byte(params)}); err != nil {
					return nil, err
				}
			}
			return text("done")
		},
		"notify": func(_ *testServer, ctx context.Context, req *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			var in struct{ Send []mcp.Notification }
			if err := json.Unmarshal(p.Arguments, &in); err != nil {
				return nil, err
			}
			var errs []string
			for _, n := range in.Send {
				errs = append(errs, fmt.Sprint(req.Peer.Notify(ctx, n)))
			}
			return text("%s", strings.Join(errs, ", "))
		},
		"change": func(_ *testServer, ctx context.Context, req *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
			return text("%v", req.Peer.Change(ctx, mcp.Notification{Method: mcp.NotificationToolsChanged}))
		},
		"leak": func(w *testServer, _ context.Context, req *mcp.Request, _ mcp.CallToolParams) (*mcp.Result, error) {
			w.mu.Lock()
			w.peers = append(w.peers, req.Peer)
			w.mu.Unlock()
			return text("leaked")
		},
		"ask nothing": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return ask(nil, nil)
		},
		"ask": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			if p.InputResponses["who"] == nil {
				return ask(nil, map[string]string{"who": form})
			}
			return text("%s, %v", p.InputResponses["who"], p.RequestState == nil)
		},
		"ask twice": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			switch {
			case p.RequestState == nil:
				return ask(new("1"), map[string]string{"b": form, "a": "roots/list"})
			case *p.RequestState == "1":
				return ask(new("2"), map[string]string{"c": `sampling/createMessage {"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}`})
			}
			keys := slices.Sorted(maps.Keys(p.InputResponses))
			return text("%s %s %s", *p.RequestState, strings.Join(keys, ","), p.Arguments)
		},
		"ask roots": func(*testServer, context.Context, *mcp.Request, mcp.CallToolParams) (*mcp.Result, error) {
			return &mcp.Result{Type: mcp.ResultInputRequired, Value: &mcp.InputRequiredResult{
				InputRequests: map[string]mcp.InputRequest{"roots": {Method: mcp.MethodListRoots}},
			}}, nil
		},
		"ask url": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			if len(p.InputResponses) == 0 {
				return ask(nil, map[string]string{"u": `elicitation/create {"mode":"url","message":"Go","url":"https://x.test"}`})
			}
			return text("%s", p.InputResponses["u"])
		},
		"ask for ever": func(_ *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			return ask(new("s"), map[string]string{"r": "roots/list"})
		},
		"later": func(w *testServer, _ context.Context, _ *mcp.Request, p mcp.CallToolParams) (*mcp.Result, error) {
			if p.RequestState != nil && *p.RequestState == "xxx" {
				return text("done")
			}
			state := "x"
			if p.RequestState != nil {
				state = *p.RequestState + "x"
			}
			return ask(&state, nil)
		},
	})
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("marshal secret") }

// values holds the Values that a handler may return, by name.
var values = map[string]any{
	"a panic": panics{}, "a nil pointer": (*mcp.CallToolResult)(nil), "a nil struct": (*mcp.DiscoverResult)(nil), "text": "text", "a number": 5, "a list": []int{1}, "a channel": make(chan int),
	"half-made content": &mcp.CallToolResult{Content: []mcp.Content{{}}},
	"a map":             map[string]any{"content": []any{}}, "an empty map": map[string]any{}, "raw": json.RawMessage(` { "content" : [ ] } `), "empty raw": json.RawMessage(`{ }`),
	"meta first": &mcp.CallToolResult{Meta: mcp.Meta{"k": 1, mcpwire.MetaSubscriptionID: 9}},
	"bad text":   &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("a\xff")}},
}

type ctx = context.Context

var background = context.Background()
