package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/gateway"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/builtin/everything"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport"
	"github.com/dowel-mcp/dowel/transport/memory"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// gated is a server that cannot be reached before its gate is open.
type gated struct {
	transport.Dialer
	open <-chan struct{}
}

func (g gated) Dial(ctx context.Context, in mcp.Inbound, o transport.ClientOptions) (mcp.Transport, error) {
	select {
	case <-g.open:
		return g.Dialer.Dial(ctx, in, o)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func tools(t *testing.T, c *client.Client) (names []string) {
	t.Helper()
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// Upstreams that are dead, slow or held do not affect the others.
func TestMissingUpstreams(t *testing.T) {
	gate := make(chan struct{})
	h := hubOf(t, hub.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour},
		hub.Definition{Name: "good", Target: asker()},
		hub.Definition{Name: "slow", Target: gated{memory.Dialer(asker()), gate}},
		hub.Definition{Name: "silent", Target: child("silent"), Options: client.Options{Wire: client.Wire{Revision: mcp.Revision20251125}, Limits: client.Limits{Connect: time.Hour}}},
		hub.Definition{Name: "dead", Target: child("exit")},
		hub.Definition{Name: "absent", Target: stdio.Command{Path: "/no/such-program-anywhere"}},
		hub.Definition{Name: "wild", Hold: hub.Hold{Status: hub.NeedsTrust, Reason: "the file x was not trusted"}},
		hub.Definition{Name: "off", Hold: hub.Hold{Status: hub.Disabled, Reason: "switched off"}},
	)
	g := gatewayOf(t, h, gateway.Options{StartWait: -1})
	until(t, "the others have settled", func() bool {
		return h.Upstream("good").State().Status == hub.Ready && h.Upstream("dead").State().Status == hub.Failed && h.Upstream("absent").State().Status == hub.Failed
	})
	c := dial(t, g, client.Options{NoCache: true})
	began := time.Now()
	for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates} {
		resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: method})
		if err != nil {
			t.Fatal(err)
		}
		var res struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		var missing []struct{ Server, Status, Reason string }
		if err := json.Unmarshal(resp.Raw, &res); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(res.Meta[mcpwire.MetaMissing], &missing); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range missing {
			got = append(got, m.Server+": "+m.Status)
			if m.Reason == "" {
				t.Errorf("%s does not say why %s is missing", method, m.Server)
			}
		}
		if want := []string{"slow: starting", "silent: starting", "dead: failed", "absent: failed", "wild: needs trust"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q", method, got)
		}
	}
	if got := tools(t, c); !slices.Equal(got, []string{"good__ask", "good__other", "good__sleep", "good__context", "dowel__status"}) {
		t.Errorf("%v", got)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the lists took %v", took)
	}
	status, err := client.Call[string](t.Context(), c, "dowel__status", nil)
	for _, want := range []string{"good: ready, 4 tools\n", "slow: starting, 0 tools", "dead: failed, 0 tools (", "no such database", "wild: needs trust, 0 tools (the file x", "off: disabled"} {
		if err != nil || !strings.Contains(status, want) {
			t.Errorf("%q is not in %q, %v", want, status, err)
		}
	}
	for tool, want := range map[string]string{
		"dead__echo": "no such database", "absent.echo": "such-program-anywhere", "Wild__Echo": "the file x was not trusted",
	} {
		res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: tool, Arguments: json.RawMessage("{}")})
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, want) {
			t.Errorf("%s: %+v, %v", tool, res, err)
		}
	}
	if _, err := c.GetPrompt(t.Context(), "dead__greet", nil); err == nil || !strings.Contains(err.Error(), "no such database") {
		t.Errorf("a prompt of a dead server: %v", err)
	}
	if _, err := client.Call[string](t.Context(), c, "off__echo", nil); code(err, jsonrpc.CodeInvalidParams) != nil {
		t.Errorf("a tool of a server that is off: %v", err)
	}
	// Calls wait for a server that is starting.
	waiting := make(chan error, 2)
	go func() {
		_, err := client.Call[string](t.Context(), c, "slow__sleep", map[string]int{"seconds": 0})
		waiting <- err
	}()
	go func() {
		_, err := c.GetPrompt(t.Context(), "slow__none", nil)
		waiting <- code(err, jsonrpc.CodeInvalidParams) // it is known by then
	}()
	close(gate) // a call that did not wait would fail
	for range 2 {
		if err := <-waiting; err != nil {
			t.Error(err)
		}
	}
}

// A call to a server that never becomes ready waits as long as the server may take to start.
func TestCallWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, hub.Options{}, hub.Definition{
			Name: "slow", Target: gated{memory.Dialer(asker()), nil}, Options: client.Options{Limits: client.Limits{Connect: 20 * time.Second}},
		})
		g := gatewayOf(t, h, gateway.Options{})
		began := time.Now()
		res, err := g.ServeMCP(t.Context(), request("ada", `{"name":"slow__ask"}`))
		if got := text(t, res, err); !strings.Contains(got, "the server slow") || time.Since(began) > 21*time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
	})
}

// If a server dies during a call, the result says so in words for the model.
func TestDiesUnderCall(t *testing.T) {
	h := hubOf(t, hub.Options{MinBackoff: 10 * time.Millisecond}, hub.Definition{Name: "up", Target: child("upstream")})
	settle(t, h)
	c := dial(t, gatewayOf(t, h, gateway.Options{}), client.Options{})
	res, err := c.CallTool(t.Context(), mcp.CallToolParams{Name: "up__hang", Arguments: json.RawMessage("{}")}, client.CallOptions{OnProgress: func(mcp.ProgressParams) {
		go h.Upstream("up").Restart("the test wants it")
	}})
	if err != nil || !res.IsError || !strings.Contains(res.Content[0].Text, "the server up has not answered") {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := client.Call[string](t.Context(), c, "up__pid", nil); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// A resource of two servers is listed under URIs that name the server.
func TestSharedURIs(t *testing.T) {
	every := func(name string) hub.Definition { return hub.Definition{Name: name, Target: everything.New()} }
	g, _ := over(t, every("one"), every("two"), hub.Definition{Name: "my own", Target: everything.New()})
	c := dial(t, g, client.Options{NoCache: true})
	resources, err := client.All(c.Resources(t.Context()))
	if err != nil || len(resources) == 0 {
		t.Fatal(resources, err)
	}
	seen := map[string]bool{}
	for _, r := range resources {
		if seen[r.URI] || !strings.HasPrefix(r.URI, "dowel://") {
			t.Errorf("%s", r.URI)
		}
		seen[r.URI] = true
		if server, _ := r.Meta["dowel/server"].(string); server == "" || !strings.Contains(r.URI, server[:2]) {
			t.Errorf("%s is of %q", r.URI, server)
		}
		if _, err := c.ReadResource(t.Context(), r.URI); err != nil {
			t.Error(err)
		}
	}
	if !seen["dowel://two/test://static-text"] {
		t.Errorf("%v", seen)
	}
	if _, err := c.ReadResource(t.Context(), "test://static-text"); err != nil {
		t.Errorf("the plain one: %v", err)
	}
	templates, err := client.All(c.ResourceTemplates(t.Context()))
	if err != nil || len(templates) != 3 || templates[1].URITemplate != "dowel://two/test://template/{id}/data" {
		t.Errorf("%+v, %v", templates, err)
	}
	if got, err := c.Complete(t.Context(), mcp.ResourceRef("dowel://two/test://template/{id}/data"), "id", "12", nil); err != nil || len(got.Values) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.ReadResource(t.Context(), "dowel://two/test://template/7/data"); err != nil || !strings.Contains(got.Contents[0].Text, "Data for ID: 7") {
		t.Errorf("%+v, %v", got, err)
	}
	// What a server links to can be read, and is that server's.
	for _, server := range []string{"one", "two"} {
		var res struct{ Content []struct{ Type, URI string } }
		resp, err := c.RoundTrip(t.Context(), &mcp.Request{Method: mcp.MethodCallTool, Params: fmt.Appendf(nil, `{"name":"%s__resource_links","arguments":{}}`, server)})
		if err != nil || json.Unmarshal(resp.Raw, &res) != nil || len(res.Content) == 0 {
			t.Fatal(err)
		}
		for _, block := range res.Content {
			if block.Type == "resource_link" && !strings.HasPrefix(block.URI, "dowel://"+server+"/test://") {
				t.Errorf("%s: %+v", server, block)
			}
		}
	}
	if got, err := c.ReadResource(t.Context(), "dowel://two/test://static-text"); err != nil || got.Contents[0].URI != "dowel://two/test://static-text" {
		t.Errorf("%+v, %v", got, err)
	}
	// A subscription to one of them reports only that one.
	const uri = "dowel://two/" + watchedURI
	w, err := c.Watch(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, tool := range []string{"one__test_trigger_resource_update", "two__test_trigger_resource_update"} {
		if _, err := client.Call[string](t.Context(), c, tool, nil); err != nil {
			t.Error(err)
		}
	}
	for change, err := range w.Changes() {
		if err != nil || change.URI != uri {
			t.Errorf("%+v, %v", change, err)
		}
		break
	}
}

// Completion waits for a server that is starting.
func TestCompletionWhileStarting(t *testing.T) {
	for name, params := range map[string]string{
		"prompt":   `{"ref":{"type":"ref/prompt","name":"up__test_prompt_with_arguments"},"argument":{"name":"arg1","value":"par"}}`,
		"template": `{"ref":{"type":"ref/resource","uri":"test://template/{id}/data"},"argument":{"name":"id","value":"12"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hubOf(t, hub.Options{}, hub.Definition{Name: "up", Target: slowly{everything.New()}})
				req := &mcp.Request{Method: mcp.MethodComplete, Params: json.RawMessage(params), Revision: mcp.LatestRevision}
				res, err := gatewayOf(t, h, gateway.Options{}).ServeMCP(t.Context(), req)
				if err != nil || !strings.Contains(string(res.Raw), `"values":["`) {
					t.Errorf("%+v, %v", res, err)
				}
			})
		})
	}
}

func TestOnly(t *testing.T) {
	g, h := over(t, hub.Definition{Name: "every", Target: everything.New()}, hub.Definition{Name: "other", Target: asker()})
	all, one := tools(t, dial(t, g, client.Options{})), tools(t, dial(t, g.Only("every"), client.Options{}))
	if !slices.Contains(all, "every__echo") || !slices.Contains(all, "other__ask") || !slices.Contains(all, "dowel__status") {
		t.Errorf("%v", all)
	}
	if !slices.Contains(one, "echo") || slices.Contains(one, "ask") || slices.Contains(one, "dowel__status") || len(one) != len(all)-5 {
		t.Errorf("%v", one)
	}
	c := dial(t, g.Only("every"), client.Options{})
	if got, err := client.Call[string](t.Context(), c, "echo", map[string]string{"message": "hi"}); got != "hi" {
		t.Error(got, err)
	}
	if _, err := client.Call[string](t.Context(), c, "dowel__status", nil); code(err, jsonrpc.CodeInvalidParams) != nil {
		t.Error(err)
	}
	if got, err := c.ReadResource(t.Context(), "test://static-text"); err != nil {
		t.Error(got, err)
	}
	if strings.Contains(c.Server().Instructions, "# every") || !strings.Contains(c.Server().Instructions, "for testing clients") {
		t.Errorf("%q", c.Server().Instructions)
	}
	// One that is not there yet.
	later := g.Only("later")
	if got := tools(t, dial(t, later, client.Options{})); len(got) != 0 {
		t.Errorf("%v", got)
	}
	h.Apply([]hub.Definition{{Name: "later", Target: asker()}}, "the test adds one")
	settle(t, h)
	if got := tools(t, dial(t, later, client.Options{})); len(got) != 4 {
		t.Errorf("%v", got)
	}
}

// A list has the narrowest caching hint of its upstreams.
func TestCacheOfLists(t *testing.T) {
	with := func(name string, ttl time.Duration, scope mcp.CacheScope) hub.Definition {
		s := server.New(name, "1", &server.Options{Cache: map[string]mcp.Cache{mcp.MethodListTools: {TTL: ttl, Scope: scope}}})
		server.Tool(s, "t", "A tool.", func(context.Context, nothing) (string, error) { return "", nil })
		return hub.Definition{Name: name, Target: s}
	}
	long, short := with("long", time.Hour, mcp.CachePublic), with("short", time.Minute, mcp.CachePublic)
	private := with("private", 2*time.Hour, mcp.CachePrivate)
	old := with("old", time.Hour, mcp.CachePublic)
	old.Options.Wire.Revision = mcp.Revision20251125
	for _, tt := range []struct {
		of   []hub.Definition
		want mcp.Cache
	}{
		{[]hub.Definition{long}, mcp.Cache{TTL: time.Hour, Scope: mcp.CachePublic}},
		{[]hub.Definition{long, short}, mcp.Cache{TTL: time.Minute, Scope: mcp.CachePublic}},
		{[]hub.Definition{private, long}, mcp.Cache{TTL: time.Hour, Scope: mcp.CachePrivate}},
		{[]hub.Definition{long, old}, mcp.Cache{Scope: mcp.CachePrivate}},
		{nil, mcp.Cache{}},
	} {
		g, _ := over(t, tt.of...)
		res, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools})
		if err != nil || res.Cache != tt.want && !(res.Cache.TTL == 0 && tt.want.TTL == 0) {
			t.Errorf("%+v, %v, want %+v", res.Cache, err, tt.want)
		}
	}
}

func TestCursors(t *testing.T) {
	g, _ := over(t, hub.Definition{Name: "every", Target: everything.New()})
	for _, cursor := range []string{`1`, `"1"`, `"x"`, `{}`, `[]`, `true`, `""`, `"-1"`, `"0"`, `"99999999999999999999"`} {
		_, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Params: fmt.Appendf(nil, `{"cursor":%s}`, cursor)})
		if err := code(err, jsonrpc.CodeInvalidParams); err != nil {
			t.Errorf("%s: %v", cursor, err)
		}
	}
	for _, params := range []string{``, `{}`, `{"cursor":null}`} {
		if _, err := g.ServeMCP(t.Context(), &mcp.Request{Method: mcp.MethodListTools, Params: json.RawMessage(params)}); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// The gateway's own tool exists for every set of upstream names.
func TestStatusToolIsTaken(t *testing.T) {
	s := server.New("dowel", "1", nil)
	server.Tool(s, "status", "Another.", func(context.Context, nothing) (string, error) { return "impostor", nil })
	g, _ := over(t, hub.Definition{Name: "dowel", Target: s})
	c := dial(t, g, client.Options{})
	all := tools(t, c)
	if len(all) != 2 || !strings.HasPrefix(all[0], "dowel__status_") || all[1] != "dowel__status" {
		t.Fatalf("%v", all)
	}
	if got, err := client.Call[string](t.Context(), c, all[0], nil); got != "impostor" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := client.Call[string](t.Context(), c, "dowel__status", nil); err != nil || !strings.HasPrefix(got, "dowel: ready") {
		t.Errorf("%q, %v", got, err)
	}
}

// The list of missing upstreams shows their current states.
func TestMissingIsUpToDate(t *testing.T) {
	bad := hub.Definition{Name: "bad", Target: child("exit")}
	h := hubOf(t, hub.Options{MinBackoff: time.Hour, MaxBackoff: time.Hour}, bad)
	settle(t, h)
	if m := h.Catalog().Missing(); len(m) != 1 || m[0].State.Status != hub.Failed {
		t.Errorf("%+v", m)
	}
	bad.Hold = hub.Hold{Status: hub.NeedsTrust, Reason: "it has changed"}
	h.Apply([]hub.Definition{bad}, "the test holds it")
	until(t, "it needs trust", func() bool { return h.Upstream("bad").State().Status == hub.NeedsTrust })
	if m := h.Catalog().Missing(); len(m) != 1 || m[0].State.Status != hub.NeedsTrust {
		t.Errorf("%+v", m)
	}
	bad.Hold = hub.Hold{Status: hub.Disabled, Reason: "switched off"}
	h.Apply([]hub.Definition{bad}, "the test disables it")
	until(t, "it is off", func() bool { return h.Upstream("bad").State().Status == hub.Disabled })
	if m := h.Catalog().Missing(); len(m) != 0 {
		t.Errorf("%+v", m)
	}
}
