package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// item makes a tool of which only the name matters.
func item(t testing.TB, name string) server.Item {
	t.Helper()
	item, err := server.NewTool(name, "", none)
	if err != nil {
		t.Fatal(err)
	}
	return item
}

func add(t testing.TB, s *server.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := s.Add(item(t, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// page asks for one page and returns its names and cursor.
func page(t testing.TB, h mcp.Handler, principal, method, cursor string) (names []string, next string) {
	t.Helper()
	params := `{}`
	if cursor != "" {
		params = fmt.Sprintf(`{"cursor":%q}`, cursor)
	}
	raw := serve(t, h, as(principal, request(method, params)))
	type named struct{ Name, URI, URITemplate string }
	var p struct {
		Tools, Prompts, Resources, ResourceTemplates []named
		NextCursor                                   string
	}
	if err := json.Unmarshal([]byte(raw), &p); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, n := range slices.Concat(p.Tools, p.Prompts, p.Resources, p.ResourceTemplates) {
		names = append(names, max(n.URI, n.URITemplate, n.Name))
	}
	return names, p.NextCursor
}

// pageCache follows the cursors to the end.
func pageCache(t testing.TB, h mcp.Handler, principal, method string) string {
	t.Helper()
	var all []string
	names, next := page(t, h, principal, method, "")
	all = append(all, strings.Join(names, " "))
	for next != "" {
		names, next = page(t, h, principal, method, next)
		all = append(all, strings.Join(names, " "))
	}
	return strings.Join(all, " | ")
}

func TestPages(t *testing.T) {
	s := newServer(server.Options{PageSize: 2})
	add(t, s, "e", "d", "c", "b", "a")
	for range 2 { // the second time from memory
		want(t, pageCache(t, s, "", mcp.MethodListTools), "e d | c b | a")
	}
	add(t, s, "f")
	want(t, pageCache(t, s, "", mcp.MethodListTools), "e d | c b | a f")
	s.Remove(server.KindTool, "d", "none", "f")
	want(t, pageCache(t, s, "", mcp.MethodListTools), "e c | b a")
}

func TestThousandTools(t *testing.T) {
	s := newServer()
	for n := range 1000 {
		add(t, s, fmt.Sprintf("tool%d", n))
	}
	if names, next := page(t, s, "", mcp.MethodListTools, ""); len(names) != 1000 || next != "" {
		t.Errorf("%d tools and the cursor %q", len(names), next)
	}
}

func TestCursorOutlastsChanges(t *testing.T) {
	s := newServer(server.Options{PageSize: 2})
	add(t, s, "a", "b", "c", "d", "e")
	_, next := page(t, s, "", mcp.MethodListTools, "")
	s.Remove(server.KindTool, "a", "b") // the item of the cursor too
	add(t, s, "f")
	if names, _ := page(t, s, "", mcp.MethodListTools, next); fmt.Sprint(names) != "[c d]" {
		t.Errorf("got %v", names)
	}
	add(t, s, "b") // comes back at the end
	if names, _ := page(t, s, "", mcp.MethodListTools, next); fmt.Sprint(names) != "[c d]" {
		t.Errorf("got %v", names)
	}
	s.Remove(server.KindTool, "a", "b", "c", "d", "e", "f")
	want(t, serve(t, s, request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, next))), `{"tools":[]}`)
}

func TestCursorOfReplica(t *testing.T) {
	keys := new(mcp.Keys)
	one, other := newServer(server.Options{PageSize: 1, Keys: keys}), newServer(server.Options{PageSize: 1, Keys: keys})
	add(t, one, "a", "b", "c")
	add(t, other, "z", "a", "c")
	_, next := page(t, one, "", mcp.MethodListTools, "")
	names, next := page(t, other, "", mcp.MethodListTools, next)
	if fmt.Sprint(names) != "[c]" || next != "" {
		t.Errorf("got %v, %q", names, next)
	}
	_, next = page(t, one, "", mcp.MethodListTools, "")
	other.Remove(server.KindTool, "a")
	wantPart(t, serve(t, other, request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, next))), "error -32602: invalid cursor")
}

func TestBadCursors(t *testing.T) {
	all := func(context.Context, mcp.Principal, server.Item) bool { return true }
	s, other := newServer(server.Options{PageSize: 1, Visible: all}), newServer()
	add(t, s, "a", "b")
	add(t, other, "a", "b")
	for _, name := range []string{"p", "q"} {
		server.Prompt(s, name, "", func(context.Context, struct{}) (string, error) { return "", nil })
	}
	_, good := page(t, s, "ann", mcp.MethodListTools, "")
	for name, req := range map[string]*mcp.Request{
		"empty":             request(mcp.MethodListTools, `{"cursor":""}`),
		"rubbish":           request(mcp.MethodListTools, `{"cursor":"MTIz"}`),
		"no string":         request(mcp.MethodListTools, `{"cursor":1}`),
		"truncated":         as("ann", request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, good[:len(good)-1]))),
		"longer":            as("ann", request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, good+"A"))),
		"another method":    as("ann", request(mcp.MethodListPrompts, fmt.Sprintf(`{"cursor":%q}`, good))),
		"another principal": as("bob", request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, good))),
	} {
		if got := serve(t, s, req); !strings.HasPrefix(got, "error -32602: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	wantPart(t, serve(t, other, as("ann", request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, good)))), "error -32602: invalid cursor")
	want(t, serve(t, s, as("ann", request(mcp.MethodListTools, fmt.Sprintf(`{"cursor":%q}`, good))))[:17], `{"tools":[{"name"`)
	wantPart(t, serve(t, s, request(mcp.MethodListTools, `{"cursor":null}`)), `"nextCursor"`)
}

func TestPublicCursorIsShared(t *testing.T) {
	s := newServer(server.Options{PageSize: 1})
	add(t, s, "a", "b")
	_, next := page(t, s, "ann", mcp.MethodListTools, "")
	if names, _ := page(t, s, "bob", mcp.MethodListTools, next); fmt.Sprint(names) != "[b]" {
		t.Errorf("a page that caches may share leads bob to %v", names)
	}
}

func TestListCache(t *testing.T) {
	minute := mcp.Cache{TTL: time.Minute}
	all := func(context.Context, mcp.Principal, server.Item) bool { return true }
	for name, c := range map[string]struct {
		opts   server.Options
		method string
		want   mcp.Cache
	}{
		"default":  {server.Options{}, mcp.MethodListTools, mcp.Cache{Scope: mcp.CachePublic}},
		"set":      {server.Options{Cache: map[string]mcp.Cache{mcp.MethodListTools: minute}}, mcp.MethodListTools, mcp.Cache{TTL: time.Minute, Scope: mcp.CachePublic}},
		"private":  {server.Options{Cache: map[string]mcp.Cache{mcp.MethodListTools: {Scope: mcp.CachePrivate}}}, mcp.MethodListTools, mcp.Cache{Scope: mcp.CachePrivate}},
		"filtered": {server.Options{Visible: all, Cache: map[string]mcp.Cache{mcp.MethodListTools: {Scope: mcp.CachePublic}}}, mcp.MethodListTools, mcp.Cache{Scope: mcp.CachePrivate}},
		"computed": {server.Options{Cache: map[string]mcp.Cache{mcp.MethodListResources: {Scope: mcp.CachePublic}}}, mcp.MethodListResources, mcp.Cache{Scope: mcp.CachePrivate}},
	} {
		c.opts.PageSize = 1
		s := newServer(c.opts)
		add(t, s, "a", "b", "c")
		server.Resource(s, "x://first", "", func(context.Context, struct{}) (string, error) { return "", nil })
		s.Provide(keys("b", "c"))
		params := `{}`
		for pages := 1; ; pages++ {
			res, err := s.ServeMCP(t.Context(), request(c.method, params))
			if err != nil || res.Cache != c.want {
				t.Fatalf("%s, page %d: %+v, %v", name, pages, res.Cache, err)
			}
			next := rawjson.Lookup(res.Raw, "nextCursor")
			if next == nil && pages != 3 {
				t.Errorf("%s: %d pages", name, pages)
			}
			if next == nil {
				break
			}
			params = `{"cursor":` + string(next) + `}`
		}
	}
}

// Lists are the same for all connections and clients of a principal, whatever they called before.
func TestListsDoNotDependOnTheConnection(t *testing.T) {
	build := func() *server.Server {
		s := newServer()
		add(t, s, "a", "b")
		server.Prompt(s, "p", "", func(context.Context, struct{}) (string, error) { return "", nil })
		server.Resource(s, "x://r", "", func(context.Context, struct{}) (string, error) { return "", nil })
		return s
	}
	lists := func(s *server.Server, change func(*mcp.Request)) (all string) {
		for _, method := range []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates} {
			req := request(method, `{}`)
			change(req)
			all += serve(t, s, req) + "\n"
		}
		return all
	}
	asIs := func(*mcp.Request) {}
	first := lists(build(), asIs)
	if !strings.Contains(first, `"name":"b"`) || !strings.Contains(first, `"name":"p"`) || !strings.Contains(first, "x://r") {
		t.Fatal(first)
	}
	peer := &peer{}
	for name, change := range map[string]func(*mcp.Request){
		"a used connection": func(req *mcp.Request) { req.Peer = peer },
		"a new connection":  asIs,
		"no connection":     func(req *mcp.Request) { req.Peer = nil },
		"another client": func(req *mcp.Request) {
			req.ClientInfo, req.ClientCapabilities = json.RawMessage(`{"name":"other","version":"2"}`), json.RawMessage(`{}`)
		},
		"a session": func(req *mcp.Request) { req.Revision = mcp.LatestLegacyRevision },
	} {
		s := build()
		for method, params := range map[string]string{
			mcp.MethodCallTool: `{"name":"a"}`, mcp.MethodGetPrompt: `{"name":"p"}`, mcp.MethodReadResource: `{"uri":"x://r"}`,
		} {
			req := request(method, params)
			req.Peer = peer
			serve(t, s, req)
		}
		for _, ask := range []func(*mcp.Request){change, asIs, change} { // the first lists are encoded, the others come from memory
			if got := lists(s, ask); got != first {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, first)
			}
		}
	}
}

func TestAddIsAtomic(t *testing.T) {
	s := newServer()
	add(t, s, "a")
	if err := s.Add(item(t, "b"), item(t, "a")); err == nil || !strings.Contains(err.Error(), `already a tool "a"`) {
		t.Errorf("got %v", err)
	}
	if err := s.Add(item(t, "b"), item(t, "b")); err == nil {
		t.Error("a name twice in one Add")
	}
	if err := s.Add(server.Item{Kind: server.KindTool, Name: "x"}); err == nil {
		t.Error("an item from nowhere")
	}
	want(t, pageCache(t, s, "", mcp.MethodListTools), "a")
	if n := s.Remove(server.KindTool, "a", "z"); n != 1 {
		t.Errorf("removed %d", n)
	}
	shared := item(t, "shared")
	for range 2 {
		if err := newServer().Add(shared); err != nil {
			t.Error(err)
		}
	}
}

// keys provides resources like a store's.
func keys(names ...string) server.ResourceProvider {
	return func(ctx context.Context, after string) iter.Seq2[mcp.Resource, error] {
		return func(yield func(mcp.Resource, error) bool) {
			for _, n := range names {
				if uri := "kv://" + n; uri > after && !yield(mcp.Resource{URI: uri}, nil) {
					return
				}
			}
		}
	}
}

func TestProviders(t *testing.T) {
	s := newServer(server.Options{PageSize: 2})
	server.Resource(s, "kv://b", "", func(context.Context, struct{}) (string, error) { return "", nil })
	s.Provide(keys("a", "b", "c", "d"))
	s.Provide(keys("x", "y"))
	want(t, pageCache(t, s, "", mcp.MethodListResources), "kv://b kv://a | kv://c kv://d | kv://x kv://y")

	res, err := s.ServeMCP(t.Context(), request(mcp.MethodListResources, `{}`))
	if err != nil || res.Cache.Scope != mcp.CachePrivate {
		t.Errorf("%v, %v", res.Cache, err)
	}
	want(t, serve(t, s, request(mcp.MethodListResourceTemplates, `{}`)), `{"resourceTemplates":[]}`)

	only := newServer()
	only.Provide(keys())
	want(t, serve(t, only, request(mcp.MethodListResources, `{}`)), `{"resources":[]}`)
	only.Provide(func(context.Context, string) iter.Seq2[mcp.Resource, error] {
		return func(yield func(mcp.Resource, error) bool) { yield(mcp.Resource{}, errors.New("no store")) }
	})
	want(t, serve(t, only, request(mcp.MethodListResources, `{}`)), `error: no store`)
}
