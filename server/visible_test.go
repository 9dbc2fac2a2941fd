package server_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// scoped hides items with "secret" in their name from all principals but the administrator.
func scoped(_ context.Context, p mcp.Principal, item server.Item) bool {
	return p.ID == "admin" || !strings.Contains(item.Name, "secret")
}

func TestVisible(t *testing.T) {
	s := newServer(server.Options{PageSize: 2, Visible: scoped})
	type city struct {
		City string `uri:"city" enum:"Oslo,Rome"`
	}
	type args struct {
		City string `json:"city,omitempty" enum:"Oslo,Rome"`
	}
	prompt := func(context.Context, args) (string, error) { return "p", nil }
	fixed := func(context.Context, struct{}) (string, error) { return "r", nil }
	vars := func(context.Context, city) (string, error) { return "t", nil }
	add(t, s, "a", "secret", "b", "c", "secret2")
	server.Prompt(s, "p", "", prompt)
	server.Prompt(s, "secret", "", prompt)
	server.Resource(s, "x://open", "", fixed)
	server.Resource(s, "x://secret", "", fixed)
	server.Resource(s, "y://{city}", "", vars)
	server.Resource(s, "secret://{city}", "", vars)
	s.Provide(keys("1", "2secret", "3"))

	want(t, pageCache(t, s, "", mcp.MethodListTools), "a b | c")
	want(t, pageCache(t, s, "admin", mcp.MethodListTools), "a secret | b c | secret2")
	want(t, pageCache(t, s, "", mcp.MethodListPrompts), "p")
	want(t, pageCache(t, s, "admin", mcp.MethodListPrompts), "p secret")
	want(t, pageCache(t, s, "", mcp.MethodListResourceTemplates), "y://{city}")
	want(t, pageCache(t, s, "", mcp.MethodListResources), "x://open kv://1 | kv://3")
	want(t, pageCache(t, s, "admin", mcp.MethodListResources), "x://open x://secret | kv://1 kv://2secret | kv://3")

	for _, c := range []struct{ method, params, unknown string }{
		{mcp.MethodCallTool, `{"name":"secret"}`, "error -32602: Unknown tool: secret"},
		{mcp.MethodGetPrompt, `{"name":"secret"}`, "error -32602: Unknown prompt: secret"},
		{mcp.MethodReadResource, `{"uri":"x://secret"}`, "error -32602: resource not found: x://secret"},
		{mcp.MethodReadResource, `{"uri":"secret://Oslo"}`, "error -32602: resource not found: secret://Oslo"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"city","value":""}}`, "error -32602: Unknown prompt: secret"},
		{mcp.MethodComplete, `{"ref":{"type":"ref/resource","uri":"secret://{city}"},"argument":{"name":"city","value":""}}`, "error -32602: resource not found: secret://{city}"},
	} {
		want(t, serve(t, s, request(c.method, c.params)), c.unknown)
		if got := serve(t, s, as("admin", request(c.method, c.params))); strings.HasPrefix(got, "error") {
			t.Errorf("%s for the administrator: %s", c.params, got)
		}
	}
}

// TestHiddenTemplateGivesWay reads through the next template that matches, as if the hidden one did
// not exist.
func TestHiddenTemplateGivesWay(t *testing.T) {
	s := newServer(server.Options{Visible: func(_ context.Context, p mcp.Principal, item server.Item) bool {
		return p.ID == "admin" || item.Name != "x://a/{id}"
	}})
	id := func(text string) func(context.Context, struct {
		ID string `uri:"id"`
	}) (string, error) {
		return func(context.Context, struct {
			ID string `uri:"id"`
		}) (string, error) {
			return text, nil
		}
	}
	server.Resource(s, "x://{+id}", "", id("general"))
	server.Resource(s, "x://a/{id}", "", id("special"))
	wantPart(t, serve(t, s, request(mcp.MethodReadResource, `{"uri":"x://a/1"}`)), "general")
	wantPart(t, serve(t, s, as("admin", request(mcp.MethodReadResource, `{"uri":"x://a/1"}`))), "special")
}

// TestVisibleIsPrivate checks that shared caches may not keep a result that depends on the user.
func TestVisibleIsPrivate(t *testing.T) {
	public := mcp.Cache{TTL: time.Minute, Scope: mcp.CachePublic}
	for _, visible := range []bool{false, true} {
		o := server.Options{Cache: map[string]mcp.Cache{mcp.MethodListTools: public, mcp.MethodListResources: public, mcp.MethodReadResource: public}}
		wanted := public
		if visible {
			o.Visible = scoped
			wanted.Scope = mcp.CachePrivate
		}
		s := newServer(o)
		add(t, s, "a")
		fixed := func(context.Context, struct{}) (string, error) { return "r", nil }
		server.Resource(s, "x://a", "", fixed)
		server.Resource(s, "x://b", "", fixed, server.ResourceOptions{Cache: &public})
		for _, req := range []*mcp.Request{
			request(mcp.MethodListTools, `{}`), request(mcp.MethodListResources, `{}`),
			request(mcp.MethodReadResource, `{"uri":"x://a"}`), request(mcp.MethodReadResource, `{"uri":"x://b"}`),
		} {
			if res, err := s.ServeMCP(t.Context(), req); err != nil || res.Cache != wanted {
				t.Errorf("%s with Visible %v: %+v, %v", req.Method, visible, res, err)
			}
		}
	}
}
