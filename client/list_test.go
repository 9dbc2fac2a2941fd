package client_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// pages answers tools/list. byCursor has the pages by the JSON of their cursor; the first page has
// the key "", since no cursor is sent for it.
type pages struct {
	byCursor map[string]string
	ttl      time.Duration
	asked    []string
}

func (p *pages) list(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
	cursor := param(req, "cursor")
	p.asked = append(p.asked, cursor)
	page, ok := p.byCursor[cursor]
	if !ok {
		return nil, mcp.InvalidParams("unknown cursor")
	}
	return &mcp.Result{Raw: []byte(page), Cache: mcp.Cache{TTL: p.ttl}}, nil
}

func page(cursor string, names ...string) string {
	for i, name := range names {
		names[i] = fmt.Sprintf(`{"name":%q,"inputSchema":{}}`, name)
	}
	next := ""
	if cursor != "" {
		next = `,"nextCursor":` + cursor
	}
	return `{"tools":[` + strings.Join(names, ",") + `]` + next + `}`
}

func toolNames(t *testing.T, c *client.Client) (names string, err error) {
	t.Helper()
	for tool, err := range c.Tools(t.Context()) {
		if err != nil {
			return names, err
		}
		names += tool.Name + " "
	}
	return names, nil
}

func TestLists(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages map[string]string
		want  string
		err   string
		asked string
	}{
		{"one page", map[string]string{"": page("", "a", "b")}, "a b ", "", ""},
		{"an empty list", map[string]string{"": page("")}, "", "", ""},
		{"several pages, one of them empty", map[string]string{"": page(`"1"`, "a"), `"1"`: page(`"2"`), `"2"`: page("", "b")}, "a b ", "", `,"1","2"`},
		{"an empty cursor", map[string]string{"": page(`""`, "a"), `""`: page("", "b")}, "a b ", "", `,""`},
		{"a cursor is sent unchanged", map[string]string{"": page(`"\u00e9\"\n"`, "a"), `"é\"\n"`: page("", "b")}, "a b ", "", `,"é\"\n"`},
		{"null is not a cursor", map[string]string{"": page(`null`, "a")}, "a ", "", ""},
		{"a cursor that repeats", map[string]string{"": page(`"1"`, "a"), `"1"`: page(`"2"`, "b"), `"2"`: page(`"1"`, "c")}, "a b c ", "repeats the cursor", `,"1","2"`},
		{"the server does not know its own cursor", map[string]string{"": page(`"1"`, "a")}, "a ", "unknown cursor", `,"1",,"1"`},
		{"no pages", nil, "", "unknown cursor", ""},
		{"unreadable", map[string]string{"": `{"tools":3}`}, "", "cannot be read", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &pages{byCursor: test.pages}
			c := dialWire(t, handlers{mcp.MethodListTools: p.list}, client.Options{})
			got, err := toolNames(t, c)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, test.want, test.err)
			}
			if asked := strings.Join(p.asked, ","); asked != test.asked {
				t.Errorf("asked for pages %s, want %s", asked, test.asked)
			}
		})
	}
}

func TestListsAreLazy(t *testing.T) {
	p := &pages{byCursor: map[string]string{"": page(`"1"`, "a", "b"), `"1"`: page("", "c")}}
	c := dialWire(t, handlers{mcp.MethodListTools: p.list}, client.Options{})
	for tool := range c.Tools(t.Context()) {
		if tool.Name == "b" {
			break
		}
	}
	if len(p.asked) != 1 {
		t.Errorf("asked for pages %q", p.asked)
	}
}

// If the server no longer knows the cursor of a cached page, the list starts again at the first
// page.
func TestListStartsAgainAfterStaleCursor(t *testing.T) {
	p := &pages{byCursor: map[string]string{"": page(`"1"`, "a", "b"), `"1"`: page("", "c")}, ttl: time.Hour}
	c := dialWire(t, handlers{mcp.MethodListTools: p.list}, client.Options{})
	for tool := range c.Tools(t.Context()) { // reads the first page only
		_ = tool
		break
	}
	p.byCursor = map[string]string{"": page(`"9"`, "b", "d"), `"9"`: page("", "e")}
	got, err := toolNames(t, c)
	if err != nil || got != "a b d e " {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err = toolNames(t, c); err != nil || got != "b d e " {
		t.Errorf("then %q, %v", got, err)
	}
	if want := `,"1",,"9"`; strings.Join(p.asked, ",") != want {
		t.Errorf("asked for pages %q", p.asked)
	}
}

func TestOtherLists(t *testing.T) {
	c := connect(t, handlers{
		mcp.MethodListResources:         returns(`{"resources":[{"uri":"x://a","name":"a"}]}`),
		mcp.MethodListResourceTemplates: returns(`{"resourceTemplates":[{"uriTemplate":"x://{a}","name":"a"}]}`),
		mcp.MethodListPrompts:           returns(`{"prompts":[{"name":"p"}]}`),
		mcp.MethodReadResource:          returns(`{"contents":[{"uri":"x://a","text":"A"}]}`),
		mcp.MethodGetPrompt: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			return raw(`{"messages":[{"role":"user","content":{"type":"text","text":` + strconv.Quote(param(req, "arguments")) + `}}]}`), nil
		},
		mcp.MethodComplete: func(_ context.Context, req *mcp.Request) (*mcp.Result, error) {
			return raw(`{"completion":{"values":[` + strconv.Quote(param(req, "argument")+param(req, "ref")+param(req, "context")) + `],"total":1}}`), nil
		},
	})
	ctx := t.Context()
	resources, err := client.All(c.Resources(ctx))
	if err != nil || len(resources) != 1 || resources[0].URI != "x://a" {
		t.Errorf("resources: %v, %v", resources, err)
	}
	templates, err := client.All(c.ResourceTemplates(ctx))
	if err != nil || len(templates) != 1 || templates[0].URITemplate != "x://{a}" {
		t.Errorf("templates: %v, %v", templates, err)
	}
	prompts, err := client.All(c.Prompts(ctx))
	if err != nil || len(prompts) != 1 || prompts[0].Name != "p" {
		t.Errorf("prompts: %v, %v", prompts, err)
	}
	contents, err := c.ReadResource(ctx, "x://a")
	if err != nil || contents.Contents[0].Text != "A" {
		t.Errorf("contents: %v, %v", contents, err)
	}
	prompt, err := c.GetPrompt(ctx, "p", map[string]string{"k": "v"})
	if err != nil || prompt.Messages[0].Content.Text != `{"k":"v"}` {
		t.Errorf("prompt: %v, %v", prompt, err)
	}
	completion, err := c.Complete(ctx, mcp.PromptRef("p"), "a", "b", map[string]string{"k": "v"})
	if want := `{"name":"a","value":"b"}{"type":"ref/prompt","name":"p"}{"arguments":{"k":"v"}}`; err != nil || completion.Values[0] != want {
		t.Errorf("completion: %v, %v", completion, err)
	}
}
