package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// What a prompt returns reaches clients only if it has the types and URIs that they need.
func TestPromptContent(t *testing.T) {
	for name, c := range map[string]struct {
		content mcp.Content
		want    string
	}{
		"an image":                  {mcp.Image([]byte{1}, "image/png"), `{"type":"image","data":"AQ==","mimeType":"image/png"}`},
		"an image without a type":   {mcp.Image([]byte{1}, ""), "image: the MIME type is missing"},
		"audio of a strange type":   {mcp.Audio([]byte{1}, "wav"), `audio: "wav" is not a MIME type`},
		"text without a type":       {mcp.Embed(mcp.ResourceContents{URI: "x://a", Text: "a"}), `{"type":"resource","resource":{"uri":"x://a","mimeType":"text/plain","text":"a"}}`},
		"data without a type":       {mcp.Embed(mcp.ResourceContents{URI: "x://a", Blob: []byte{1}}), `{"type":"resource","resource":{"uri":"x://a","mimeType":"application/octet-stream","blob":"AQ=="}}`},
		"a resource without a URI":  {mcp.Embed(mcp.ResourceContents{Text: "a"}), `resource: "" is not an absolute URI`},
		"a resource of odd type":    {mcp.Embed(mcp.ResourceContents{URI: "x://a", MIMEType: "odd", Text: "a"}), `"odd" is not a MIME type`},
		"a block with a bad key":    {mcp.Content{Type: mcp.ContentText, Text: "a", Meta: mcp.Meta{"-bad": 1}}, `messages[0]: "-bad" is not a key of _meta`},
		"a resource with a bad key": {mcp.Embed(mcp.ResourceContents{URI: "x://a", MIMEType: "text/plain", Meta: mcp.Meta{"-bad": 1}}), `"-bad" is not a key of _meta`},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &mcp.GetPromptResult{Messages: []mcp.PromptMessage{{Role: mcp.RoleUser, Content: c.content}}}
			s := newServer()
			server.Prompt(s, "p", "", func(context.Context, struct{}) (*mcp.GetPromptResult, error) { return kept, nil })
			before := fmt.Sprint(c.content.Resource)
			got := get(t, s, "p", `{}`)
			if strings.HasPrefix(c.want, "{") {
				want(t, got, `{"messages":[{"role":"user","content":`+c.want+`}]}`)
			} else {
				wantPart(t, got, "error: ")
				wantPart(t, got, c.want)
			}
			if after := fmt.Sprint(kept.Messages[0].Content.Resource); after != before {
				t.Errorf("the handler's own value was changed: %s", after)
			}
		})
	}
}

// Keys of _meta that the protocol does not allow are mistakes of the author: of items when they are
// made, of results when they are returned.
func TestMetaKeys(t *testing.T) {
	bad := mcp.Meta{"-bad key!": 1}
	const wanted = `"-bad key!" is not a key of _meta: want a name or a prefix and a name`
	prompt := func(context.Context, struct{}) (string, error) { return "", nil }
	for name, make := range map[string]func() (server.Item, error){
		"tool":   func() (server.Item, error) { return server.NewTool("t", "", none, server.ToolOptions{Meta: bad}) },
		"prompt": func() (server.Item, error) { return server.NewPrompt("p", "", prompt, server.PromptOptions{Meta: bad}) },
		"resource": func() (server.Item, error) {
			return server.NewResource("x://a", "", prompt, server.ResourceOptions{Meta: bad})
		},
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var log strings.Builder
	s := newServer(server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	server.Tool(s, "result", "", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Meta: bad}, nil
	})
	server.Tool(s, "block", "", func(context.Context, struct{}) (mcp.Content, error) {
		return mcp.Content{Type: mcp.ContentText, Meta: bad}, nil
	})
	server.Resource(s, "x://contents", "", func(context.Context, struct{}) (mcp.ResourceContents, error) {
		return mcp.ResourceContents{Text: "a", Meta: bad}, nil
	})
	wantPart(t, call(t, s, "result", `{}`), "the tool's output was invalid")
	wantPart(t, call(t, s, "block", `{}`), "the tool's output was invalid")
	wantPart(t, log.String(), `content[0]: \"-bad key!\" is not a key of _meta`)
	wantPart(t, serve(t, s, request(mcp.MethodReadResource, `{"uri":"x://contents"}`)), "error: contents[0]: ")
}

func TestExtensionIdentifiers(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), `the extension "no prefix!" has no valid identifier`) {
			t.Errorf("panicked with %v", p)
		}
	}()
	server.New("s", "1", &server.Options{Extensions: []mcp.Extension{{ID: "no prefix!", Settings: json.RawMessage(`{}`)}}})
}

func TestComputedResourcesHaveURIs(t *testing.T) {
	var log strings.Builder
	s := newServer(server.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Declare: []server.Kind{server.KindResource}})
	s.Provide(func(context.Context, string) iter.Seq2[mcp.Resource, error] {
		return func(yield func(mcp.Resource, error) bool) {
			_ = yield(mcp.Resource{URI: "x:///a b"}, nil) && yield(mcp.Resource{URI: "x:///b"}, nil)
		}
	})
	wantPart(t, serve(t, s, request(mcp.MethodListResources, `{}`)), `"resources":[{"uri":"x:///b","name":"x:///b"}]`)
	wantPart(t, log.String(), "a computed resource is left out")
}
