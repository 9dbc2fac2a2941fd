package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

// Lists that the server has not declared are not requested. A strict client makes no other
// undeclared call either.
func TestUndeclaredCapabilities(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *client.Client) error{
		mcp.MethodListTools:     func(ctx context.Context, c *client.Client) error { _, err := client.All(c.Tools(ctx)); return err },
		mcp.MethodListPrompts:   func(ctx context.Context, c *client.Client) error { _, err := client.All(c.Prompts(ctx)); return err },
		mcp.MethodListResources: func(ctx context.Context, c *client.Client) error { _, err := client.All(c.Resources(ctx)); return err },
		mcp.MethodListResourceTemplates: func(ctx context.Context, c *client.Client) error {
			_, err := client.All(c.ResourceTemplates(ctx))
			return err
		},
		mcp.MethodCallTool: func(ctx context.Context, c *client.Client) error {
			_, err := client.Call[string](ctx, c, "t", nil)
			return err
		},
		mcp.MethodGetPrompt:    func(ctx context.Context, c *client.Client) error { _, err := c.GetPrompt(ctx, "p", nil); return err },
		mcp.MethodReadResource: func(ctx context.Context, c *client.Client) error { _, err := c.ReadResource(ctx, "x://a"); return err },
		mcp.MethodComplete: func(ctx context.Context, c *client.Client) error {
			_, err := c.Complete(ctx, mcp.PromptRef("p"), "a", "", nil)
			return err
		},
	}
	const tools = `{"tools":{},"logging":{}}`
	for _, test := range []struct {
		name         string
		capabilities string
		strict       bool
		refused      string // the methods that are not sent
	}{
		{"tools", tools, false, "prompts/list resources/list resources/templates/list"},
		{"tools, strict", tools, true, "prompts/list resources/list resources/templates/list prompts/get resources/read completion/complete"},
		{"nothing", `{}`, false, "tools/list prompts/list resources/list resources/templates/list"},
		{"all, strict", `{"tools":{},"prompts":{},"resources":{},"completions":{}}`, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			eras(t, func(t *testing.T, revision mcp.Revision) {
				sent := map[string]bool{}
				h := handlers{mcp.MethodDiscover: returns(`{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":` + test.capabilities + `}`)}
				for method := range calls {
					h[method] = func(context.Context, *mcp.Request) (*mcp.Result, error) {
						sent[method] = true
						return nil, mcp.MethodNotFound(method)
					}
				}
				c := connect(t, h, client.Options{StrictCapabilities: test.strict, Wire: client.Wire{Revision: revision}})
				for method, call := range calls {
					err := call(t.Context(), c)
					refused := strings.Contains(" "+test.refused+" ", " "+method+" ")
					if sent[method] == refused || errors.Is(err, errors.ErrUnsupported) != refused {
						t.Errorf("%s: it was sent: %v; the error is %v", method, sent[method], err)
					}
					if method == mcp.MethodListPrompts && test.capabilities == tools && !strings.Contains(err.Error(), "does not declare prompts, only tools and logging") {
						t.Errorf("%v", err)
					}
				}
			})
		})
	}
}
