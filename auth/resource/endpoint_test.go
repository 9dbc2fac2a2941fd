package resource_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/auth/resource"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest/authtest"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/sse"
	"github.com/dowel-mcp/dowel/transport/streamable"
	"github.com/dowel-mcp/dowel/transport/websocket"
)

type pathArgument struct {
	Path string `json:"path"`
}

// testEndpoint is a server with scopes behind a resource server, over all transports.
type testEndpoint struct {
	*testing.T
	as     *authtest.Server
	origin string
}

func startEndpoint(t *testing.T, change func(*streamable.Options)) *testEndpoint {
	t.Helper()
	s := server.New("notes", "1", nil)
	server.Tool(s, "whoami", "", func(ctx context.Context, _ struct{}) (string, error) {
		return server.RequestFrom(ctx).Principal.ID + " as " + resource.FromContext(ctx).ClientID, nil
	})
	server.Tool(s, "write", "", func(_ context.Context, _ pathArgument) (string, error) { return "written", nil },
		server.ToolOptions{Scopes: []string{"notes:write"}, ScopesFor: func(arguments json.RawMessage) []string {
			if strings.Contains(string(arguments), "shared") {
				return []string{"notes:share"}
			}
			return nil
		}})
	server.Tool(s, "ask", "", func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := server.Ask[struct {
			Name string `json:"name"`
		}](ctx, "name", "Who are you?")
		return answer.Name, err
	})
	as := authtest.Start(t, nil)
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	guard, err := resource.New(resource.Options{URL: web.URL, Issuers: []resource.Issuer{{URL: as.Issuer}}})
	if err != nil {
		t.Fatal(err)
	}
	opts := &streamable.Options{}
	if change != nil {
		change(opts)
	}
	endpoint, legacy, sockets := streamable.Handler(s, opts), sse.Handler(s, opts), websocket.Handler(s, nil)
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		for _, e := range []interface{ Shutdown(context.Context) error }{endpoint, legacy, sockets} {
			_ = e.Shutdown(ended) // the test does not wait for calls
		}
	})
	inner := http.NewServeMux()
	inner.Handle("/mcp", endpoint)
	inner.Handle("/sse", legacy)
	inner.Handle("/ws", sockets)
	mux.Handle("/", guard.Protect(inner))
	return &testEndpoint{t, as, web.URL}
}

// token returns a token of a user.
func (e *testEndpoint) token(user string, scopes ...string) string {
	now := e.as.Now().Unix()
	return e.as.Sign(nil, map[string]any{
		"iss": e.as.Issuer, "aud": e.origin, "sub": user, "client_id": "test", "exp": now + 3600, "scope": strings.Join(scopes, " "),
	})
}

// post sends a message and returns the answer with its body.
func (e *testEndpoint) post(path, token, message string, header ...string) (*http.Response, string) {
	e.Helper()
	r, err := http.NewRequestWithContext(e.Context(), http.MethodPost, e.origin+path, strings.NewReader(message))
	if err != nil {
		e.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		e.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		e.Fatal(err)
	}
	return resp, string(body)
}

// call calls a tool in the latest revision.
func (e *testEndpoint) call(token, tool, members string) (*http.Response, string) {
	e.Helper()
	params := fmt.Sprintf(`{"name":%q,%s"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}`,
		tool, members, mcp.LatestRevision)
	return e.post("/mcp", token, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`,
		"Mcp-Protocol-Version", string(mcp.LatestRevision), "Mcp-Method", "tools/call", "Mcp-Name", tool)
}

// openSession returns the id of a legacy session.
func (e *testEndpoint) openSession(token string, revision mcp.Revision) string {
	e.Helper()
	resp, body := e.post("/mcp", token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, revision))
	id := resp.Header.Get("Mcp-Session-Id")
	if id == "" {
		e.Fatalf("initialize: status %d with %s", resp.StatusCode, body)
	}
	return id
}

// wantScopes checks that an answer is a challenge for scopes, before a stream has begun.
func (e *testEndpoint) wantScopes(resp *http.Response, body, scopes string) {
	e.Helper()
	want := `scope="` + scopes + `"`
	got := resp.Header.Get("WWW-Authenticate")
	if resp.StatusCode != http.StatusForbidden || !strings.HasPrefix(got, `Bearer error="insufficient_scope"`) || !strings.Contains(got, want) || !strings.Contains(got, `resource_metadata="`+e.origin+`/.well-known/oauth-protected-resource/`) {
		e.Errorf("status %d, WWW-Authenticate %s, body %s; want 403 with %s", resp.StatusCode, got, body, want)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		e.Errorf("the refusal is %s, want application/json", kind)
	}
}

func TestScopesOfTools(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*streamable.Options){"documents": nil, "streams": func(o *streamable.Options) { o.StreamAtOnce = true }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startEndpoint(t, change)
			reader, writer, sharer := e.token("ann"), e.token("ann", "notes:write"), e.token("ann", "notes:share", "notes:write")
			const shared = `"arguments":{"path":"shared/a"},`
			resp, body := e.call(reader, "write", `"arguments":{"path":"a"},`)
			e.wantScopes(resp, body, "notes:write")
			resp, body = e.call(writer, "write", shared)
			e.wantScopes(resp, body, "notes:write notes:share")
			for token, members := range map[string]string{writer: `"arguments":{"path":"a"},`, sharer: shared} {
				if resp, body := e.call(token, "write", members); resp.StatusCode != 200 || !strings.Contains(body, "written") {
					t.Errorf("status %d with %s", resp.StatusCode, body)
				}
			}
			session := e.openSession(reader, mcp.Revision20250326)
			message := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{"path":"shared/a"}}}`
			resp, body = e.post("/mcp", reader, message, "Mcp-Session-Id", session)
			e.wantScopes(resp, body, "notes:write notes:share")
			resp, body = e.post("/mcp", reader, `[{"jsonrpc":"2.0","id":3,"method":"ping"},`+message+`]`, "Mcp-Session-Id", session)
			e.wantScopes(resp, body, "notes:share notes:write")
			if resp, body := e.post("/mcp", sharer, message, "Mcp-Session-Id", session); resp.StatusCode != 200 || !strings.Contains(body, "written") {
				t.Errorf("a session after the step-up: status %d with %s", resp.StatusCode, body)
			}
		})
	}
}

// TestScopesOverSSE checks the transport of 2024: its messages have statuses, too.
func TestScopesOverSSE(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.origin+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+e.token("ann"))
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return ""
	}
	address := "/" + strings.TrimPrefix(next(), "/")
	messages := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{"path":"a"}}}`,
	}
	e.post(address, e.token("ann"), messages[0])
	next()
	resp, body := e.post(address, e.token("ann"), messages[1])
	e.wantScopes(resp, body, "notes:write")
	if resp, body := e.post(address, e.token("bob", "notes:write"), messages[1]); resp.StatusCode != http.StatusForbidden || resp.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("another user: status %d with %s, want 403 without a challenge", resp.StatusCode, body)
	}
	if resp, body := e.post(address, e.token("ann", "notes:write"), messages[1]); resp.StatusCode != http.StatusAccepted {
		t.Errorf("status %d with %s, want 202", resp.StatusCode, body)
	}
	if answer := next(); !strings.Contains(answer, "written") {
		t.Errorf("the answer is %s", answer)
	}
}

// TestScopesOverWebSocket checks a transport whose messages have no status.
func TestScopesOverWebSocket(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, nil)
	for token, want := range map[string]string{e.token("ann"): "scopes notes:write", e.token("ann", "notes:write"): ""} {
		target := websocket.URL{URL: "ws" + strings.TrimPrefix(e.origin, "http") + "/ws", Header: func(context.Context) (http.Header, error) {
			return http.Header{"Authorization": {"Bearer " + token}}, nil
		}}
		c, err := client.Dial(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Call[string](t.Context(), c, "write", map[string]any{"path": "a"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
		c.Close()
	}
}

// TestUsers checks that handlers see the user, and that the second user can use neither the session
// nor the request state of the first.
func TestUsers(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, nil)
	ann, bob := e.token("ann"), e.token("bob")
	if _, body := e.call(ann, "whoami", ""); !strings.Contains(body, e.as.Issuer+"#ann as test") {
		t.Errorf("the handler answers %s", body)
	}
	session := e.openSession(ann, mcp.Revision20251125)
	list := `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	for _, tt := range []struct {
		token string
		want  int
	}{{ann, 200}, {bob, 404}, {e.token("ann", "more"), 200}} {
		if resp, body := e.post("/mcp", tt.token, list, "Mcp-Session-Id", session); resp.StatusCode != tt.want {
			t.Errorf("the session: status %d with %s, want %d", resp.StatusCode, body, tt.want)
		}
	}
	_, body := e.call(ann, "ask", "")
	var asked struct {
		Result struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil || asked.Result.RequestState == "" {
		t.Fatalf("the tool has not asked: %v in %s", err, body)
	}
	for key := range asked.Result.InputRequests {
		answer := fmt.Sprintf(`"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"eve"}}},`, asked.Result.RequestState, key)
		if resp, body := e.call(bob, "ask", answer); resp.StatusCode != 400 || !strings.Contains(body, "requestState is not valid") {
			t.Errorf("the request state of another user: status %d with %s", resp.StatusCode, body)
		}
		if resp, body := e.call(ann, "ask", answer); resp.StatusCode != 200 || !strings.Contains(body, "eve") {
			t.Errorf("the user's own request state: status %d with %s", resp.StatusCode, body)
		}
	}
}

// TestForgottenPrincipal checks that a server with scopes and no resource server in front refuses
// everybody.
func TestForgottenPrincipal(t *testing.T) {
	t.Parallel()
	e := startEndpoint(t, nil)
	s := server.New("open", "1", nil)
	server.Tool(s, "write", "", func(context.Context, struct{}) (string, error) { return "written", nil }, server.ToolOptions{Scopes: []string{"notes:write"}})
	web := httptest.NewServer(streamable.Handler(s, nil))
	t.Cleanup(web.Close)
	e.origin = web.URL
	resp, body := e.call("x", "write", "")
	if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 403 || got != `Bearer error="insufficient_scope", scope="notes:write"` {
		t.Errorf("status %d with %s and %s, want 403 with a challenge", resp.StatusCode, got, body)
	}
}
