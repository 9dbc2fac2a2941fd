package server_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func read(t testing.TB, h mcp.Handler, uri string) string {
	t.Helper()
	return serve(t, h, request(mcp.MethodReadResource, fmt.Sprintf(`{"uri":%q}`, uri)))
}

func TestResourceOutputs(t *testing.T) {
	s := newServer()
	server.Resource(s, "x://string", "", func(context.Context, struct{}) (string, error) { return "s", nil })
	server.Resource(s, "x://html", "", func(context.Context, struct{}) (string, error) { return "<p>", nil }, server.ResourceOptions{MIMEType: "text/html"})
	server.Resource(s, "x://bytes", "", func(context.Context, struct{}) ([]byte, error) { return []byte{1}, nil })
	server.Resource(s, "x://nil", "", func(context.Context, struct{}) ([]byte, error) { return nil, nil })
	server.Resource(s, "x://content", "", func(context.Context, struct{}) (mcp.Content, error) { return mcp.Text("c"), nil })
	server.Resource(s, "x://image", "", func(context.Context, struct{}) (mcp.Content, error) {
		return mcp.Image([]byte{1}, "image/png"), nil
	}, server.ResourceOptions{MIMEType: "image/x"})
	server.Resource(s, "x://one", "", func(context.Context, struct{}) (mcp.ResourceContents, error) {
		return mcp.ResourceContents{URI: "x://other", MIMEType: "a/b", Text: "t"}, nil
	})
	server.Resource(s, "x://some", "", func(ctx context.Context, _ struct{}) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{{URI: server.URI(ctx) + "/1", Text: "1"}, {Text: "2"}}, nil
	})
	server.Resource(s, "x://empty", "", func(context.Context, struct{}) ([]mcp.ResourceContents, error) { return []mcp.ResourceContents{}, nil })
	server.Resource(s, "x://result", "", func(context.Context, struct{}) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []mcp.ResourceContents{{Text: "r"}}}, nil
	})
	server.Resource(s, "x://json", "", func(context.Context, struct{}) (point, error) { return point{X: 1}, nil })
	server.Resource(s, "x://gone", "", func(context.Context, struct{}) (string, error) {
		return "", fmt.Errorf("open: %w", fs.ErrNotExist)
	})
	server.Resource(s, "x://broken", "", func(context.Context, struct{}) (string, error) { return "", errors.New("broken") })
	for uri, expected := range map[string]string{
		"x://string":  `{"contents":[{"uri":"x://string","mimeType":"text/plain","text":"s"}]}`,
		"x://html":    `{"contents":[{"uri":"x://html","mimeType":"text/html","text":"<p>"}]}`,
		"x://bytes":   `{"contents":[{"uri":"x://bytes","mimeType":"application/octet-stream","blob":"AQ=="}]}`,
		"x://nil":     `error -32602: resource not found: x://nil`,
		"x://content": `{"contents":[{"uri":"x://content","mimeType":"text/plain","text":"c"}]}`,
		"x://image":   `{"contents":[{"uri":"x://image","mimeType":"image/png","blob":"AQ=="}]}`,
		"x://one":     `{"contents":[{"uri":"x://other","mimeType":"a/b","text":"t"}]}`,
		"x://some":    `{"contents":[{"uri":"x://some/1","text":"1"},{"uri":"x://some","text":"2"}]}`,
		"x://empty":   `{"contents":[]}`,
		"x://result":  `{"contents":[{"uri":"x://result","text":"r"}]}`,
		"x://json":    `{"contents":[{"uri":"x://json","mimeType":"application/json","text":"{\"x\":1,\"l\":[]}"}]}`,
		"x://gone":    `error -32602: resource not found: x://gone`,
		"x://broken":  `error: broken`,
		"x://unknown": `error -32602: resource not found: x://unknown`,
	} {
		want(t, read(t, s, uri), expected)
	}
	_, err := s.ServeMCP(t.Context(), request(mcp.MethodReadResource, `{"uri":"x://unknown"}`))
	if e := (*mcp.Error)(nil); !errors.As(err, &e) || string(e.Data) != `{"uri":"x://unknown"}` {
		t.Errorf("data of %v", err)
	}
	wantPart(t, serve(t, s, request(mcp.MethodReadResource, `{}`)), "error -32602: resources/read needs params.uri")
}

func TestTemplates(t *testing.T) {
	s := newServer()
	type any1 struct {
		Path []string `uri:"path"`
	}
	server.Resource(s, "x://{path*}", "", func(_ context.Context, v any1) (string, error) { return fmt.Sprint("list", v.Path), nil })
	server.Resource(s, "x://n/{n}", "", func(_ context.Context, v struct {
		N int8 `uri:"n"`
	}) (string, error) {
		return fmt.Sprint("int ", v.N), nil
	})
	server.Resource(s, "x://n/{word}", "", func(_ context.Context, v struct {
		W string `uri:"word" enum:"one,two"`
	}) (string, error) {
		return "word " + v.W, nil
	})
	server.Resource(s, "x://n/7", "", func(context.Context, struct{}) (string, error) { return "fixed", nil })
	server.Resource(s, "x://when/{t}{?wait,loud}", "", func(_ context.Context, v struct {
		T    time.Time      `uri:"t"`
		Wait *time.Duration `uri:"wait"`
		Loud bool           `uri:"loud"`
	}) (string, error) {
		return fmt.Sprint(v.T.Year(), v.Wait, v.Loud), nil
	})
	for uri, expected := range map[string]string{
		"x://n/1":                         `"int 1"`,
		"x://n/7":                         `"fixed"`,
		"x://n/two":                       `"word two"`,
		"x://n/300":                       "error -32602: resource not found: x://n/300",
		"x://a,b":                         `"list[a b]"`,
		"x://when/2026-01-02T03:04:05Z":   `"2026 \u003cnil\u003e false"`,
		"x://when/yesterday":              "error -32602: resource not found: x://when/yesterday",
		"x://other/of/a/shape":            "error -32602: resource not found: x://other/of/a/shape",
		"x://when/2026-01-02T03:04:05Z?l": "error -32602",
	} {
		got := read(t, s, uri)
		if !strings.Contains(strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(got), expected) {
			t.Errorf("%s: %s", uri, got)
		}
	}
	wantPart(t, read(t, s, "x://when/2026-01-02T03:04:05Z?wait=2s&loud=true"), "true")
}

// TestMostSpecificTemplate does not depend on the order in which templates were added.
func TestMostSpecificTemplate(t *testing.T) {
	templates := []string{"x://{+v}", "x://a/{v}", "x://a/b{v}"}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		s := newServer()
		for _, n := range order {
			server.Resource(s, templates[n], "", func(context.Context, struct {
				V string `uri:"v"`
			}) (string, error) {
				return templates[n], nil
			})
		}
		wantPart(t, read(t, s, "x://a/bc"), `"text":"x://a/b{v}"`)
		wantPart(t, read(t, s, "x://a/c"), `"text":"x://a/{v}"`)
		wantPart(t, read(t, s, "x://c/d"), `"text":"x://{+v}"`)
		s.Remove(server.KindResourceTemplate, "x://a/b{v}")
		wantPart(t, read(t, s, "x://a/bc"), `"text":"x://a/{v}"`)
	}
}

func TestResourceLists(t *testing.T) {
	s := newServer()
	size := int64(3)
	server.Resource(s, "x://y", "D.", func(context.Context, struct{}) (string, error) { return "", nil },
		server.ResourceOptions{Name: "n", Title: "T", MIMEType: "a/b", Size: &size, Annotations: &mcp.Annotations{Audience: []mcp.Role{mcp.RoleUser}}})
	server.Resource(s, "x://{v}", "", func(context.Context, struct {
		V string `uri:"v"`
	}) (string, error) {
		return "", nil
	})
	want(t, serve(t, s, request(mcp.MethodListResources, `{}`)),
		`{"resources":[{"uri":"x://y","name":"n","title":"T","description":"D.","mimeType":"a/b","size":3,"annotations":{"audience":["user"]}}]}`)
	want(t, serve(t, s, request(mcp.MethodListResourceTemplates, `{}`)), `{"resourceTemplates":[{"uriTemplate":"x://{v}","name":"x://{v}"}]}`)
}

func TestReadCache(t *testing.T) {
	s := newServer(server.Options{Cache: map[string]mcp.Cache{mcp.MethodReadResource: {TTL: time.Second}}})
	fn := func(context.Context, struct{}) (string, error) { return "", nil }
	server.Resource(s, "x://general", "", fn)
	server.Resource(s, "x://own", "", fn, server.ResourceOptions{Cache: &mcp.Cache{TTL: time.Hour, Scope: mcp.CachePublic}})
	for _, c := range []struct {
		params string
		want   mcp.Cache
	}{
		{`{"uri":"x://general"}`, mcp.Cache{TTL: time.Second}},
		{`{"uri":"x://own"}`, mcp.Cache{TTL: time.Hour, Scope: mcp.CachePublic}},
		{`{"uri":"x://own","inputResponses":{}}`, mcp.Cache{}},
	} {
		res, err := s.ServeMCP(t.Context(), request(mcp.MethodReadResource, c.params))
		if err != nil || res.Cache != c.want {
			t.Errorf("%s: %+v, %v", c.params, res, err)
		}
	}
}

func TestResourceMistakes(t *testing.T) {
	type v struct {
		V string `uri:"v"`
	}
	size := int64(1)
	withV := func(context.Context, v) (string, error) { return "", nil }
	without := func(context.Context, struct{}) (string, error) { return "", nil }
	for want, make := range map[string]func() (server.Item, error){
		"is not an absolute URI":          func() (server.Item, error) { return server.NewResource("name", "", without) },
		`"x:" is not an absolute URI`:     func() (server.Item, error) { return server.NewResource("x:", "", without) },
		`has " " where a URI cannot`:      func() (server.Item, error) { return server.NewResource("x:///a b", "", without) },
		`has "<" where a URI cannot`:      func() (server.Item, error) { return server.NewResource("x://a/<>", "", without) },
		`"x_y://a" is not an absolute`:    func() (server.Item, error) { return server.NewResource("x_y://a", "", without) },
		"a fixed URI has no variables":    func() (server.Item, error) { return server.NewResource("x://y", "", withV) },
		"no field is tagged":              func() (server.Item, error) { return server.NewResource("x://{v}", "", without) },
		"the template has no variable":    func() (server.Item, error) { return server.NewResource("x://{w}", "", withV) },
		"not the template of an absolute": func() (server.Item, error) { return server.NewResource("{v}", "", withV) },
		"not the template of an":          func() (server.Item, error) { return server.NewResource("1x://{v}", "", withV) },
		"uritemplate":                     func() (server.Item, error) { return server.NewResource("x://{v", "", withV) },
		"a template has no size": func() (server.Item, error) {
			return server.NewResource("x://{v}", "", withV, server.ResourceOptions{Size: &size})
		},
		`Complete: unknown argument "w"`: func() (server.Item, error) {
			return server.NewResource("x://{v}", "", withV, server.ResourceOptions{Complete: map[string]server.CompleteFunc{"w": nil}})
		},
		"cannot be read from text": func() (server.Item, error) {
			return server.NewResource("x://{v}", "", func(context.Context, struct {
				V chan int `uri:"v"`
			}) (string, error) {
				return "", nil
			})
		},
		"string is not a struct": func() (server.Item, error) {
			return server.NewResource("x://{v}", "", func(context.Context, string) (string, error) { return "", nil })
		},
		`has two fields "v"`: func() (server.Item, error) {
			return server.NewResource("x://{v}", "", func(context.Context, struct {
				A string `uri:"v"`
				B string `uri:"v"`
			}) (string, error) {
				return "", nil
			})
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
