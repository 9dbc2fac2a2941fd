package everything

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
	"github.com/dowel-mcp/dowel/server"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// answerer is a client's side of asking: it notes the questions, and answers them all.
type answerer struct {
	mu    sync.Mutex
	asked []string // messages of forms, prompts of sampling, URLs, and "roots"
	forms []json.RawMessage
	// action is the user's answer to forms, accept by default; content is the content of the form.
	action  mcp.ElicitAction
	content func(message string) string
}

func (a *answerer) note(question string, form json.RawMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, question)
	if form != nil {
		a.forms = append(a.forms, form)
	}
}

func (a *answerer) questions() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.asked
	a.asked = nil
	slices.Sort(asked)
	return asked
}

func (a *answerer) elicit(_ context.Context, q *client.ElicitRequest) (*mcp.ElicitResult, error) {
	if q.Mode == mcp.ElicitURL {
		a.note(q.URL, nil)
		return &mcp.ElicitResult{Action: mcp.ElicitAccept}, nil
	}
	a.note(q.Message, q.RequestedSchema)
	if a.action != "" {
		return &mcp.ElicitResult{Action: a.action}, nil
	}
	return &mcp.ElicitResult{Action: mcp.ElicitAccept, Content: json.RawMessage(a.content(q.Message))}, nil
}

func (a *answerer) sample(_ context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	a.note(p.Messages[0].Content[0].Text, nil)
	return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "model", Content: mcp.SamplingContent{mcp.Text("words")}}, nil
}

func (a *answerer) roots(context.Context) ([]mcp.Root, error) {
	a.note("roots", nil)
	return []mcp.Root{{URI: "file:///home", Name: "home"}}, nil
}

func (a *answerer) options() client.Options {
	return client.Options{Answers: client.Answers{Elicit: a.elicit, ElicitURL: true, Sample: a.sample, Roots: a.roots}}
}

func dial(t *testing.T, s mcp.Handler, revision mcp.Revision, o client.Options) *client.Client {
	t.Helper()
	o.Wire.Revision, o.Wire.Tap = revision, mcptest.ClientTap(t)
	c, err := client.Dial(t.Context(), s, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// forRevisions runs a test with a client of each revision, in a bubble where pauses take no time.
// All messages are held against the revision's schema.
func forRevisions(t *testing.T, a *answerer, test func(t *testing.T, r mcp.Revision, c *client.Client)) {
	for _, revision := range mcp.Revisions() {
		t.Run(string(revision), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New()
				defer s.Close()
				o := client.Options{}
				if a != nil {
					o = a.options()
				}
				c := dial(t, s, revision, o)
				defer c.Close()
				test(t, revision, c)
			})
		})
	}
}

type args map[string]any

// call calls a tool and returns its result, also where it failed.
func call(t *testing.T, c *client.Client, tool string, in any, opts ...client.CallOptions) *mcp.CallToolResult {
	t.Helper()
	result, err := client.Call[*mcp.CallToolResult](t.Context(), c, tool, in, opts...)
	if failed, ok := errors.AsType[*client.ToolError](err); ok {
		return failed.Result
	}
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return result
}

func wantText(t *testing.T, c *client.Client, tool string, in any, want string) {
	t.Helper()
	result := call(t, c, tool, in)
	if len(result.Content) != 1 || result.IsError || result.Content[0].Text != want {
		t.Errorf("%s: got %+v, want the text %q", tool, result, want)
	}
}

func names[T any](t *testing.T, list []T, err error, name func(T) string) (all []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list {
		all = append(all, name(item))
	}
	return all
}

// suite holds the names that the conformance suite uses.
var suite = struct{ tools, prompts, resources []string }{
	tools: []string{
		"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types",
		"test_error_handling", "test_tool_with_progress", "json_schema_2020_12_tool",
		"test_tool_with_logging", "test_sampling", "test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", "test_reconnection",
		"test_missing_capability", "test_streaming_elicitation", "test_logging_tool", "test_trigger_tool_change", "test_trigger_prompt_change",
		"test_x_mcp_header", "test_input_required_result_elicitation", "test_input_required_result_sampling", "test_input_required_result_list_roots",
		"test_input_required_result_request_state", "test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
		"test_input_required_result_tampered_state", "test_input_required_result_capabilities",
		"echo", "add", "slow",
	},
	prompts: []string{
		"test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource", "test_prompt_with_image", "test_input_required_result_prompt",
	},
	resources: []string{"test://static-text", "test://static-binary", "test://watched-resource"},
}

func wantAll(t *testing.T, got, want []string) {
	t.Helper()
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestOffersWhatTheSuiteCalls(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		capabilities := c.Server().Capabilities
		if !capabilities.Tools.ListChanged || !capabilities.Prompts.ListChanged || !capabilities.Resources.ListChanged || !capabilities.Resources.Subscribe ||
			capabilities.Logging == nil || (capabilities.Completions == nil) != (r < mcp.Revision20250326) {
			t.Errorf("got the capabilities %+v", capabilities)
		}
		tools, err := client.All(c.Tools(t.Context()))
		wantAll(t, names(t, tools, err, func(tool mcp.Tool) string { return tool.Name }), suite.tools)
		prompts, err := client.All(c.Prompts(t.Context()))
		wantAll(t, names(t, prompts, err, func(p mcp.Prompt) string { return p.Name }), suite.prompts)
		resources, err := client.All(c.Resources(t.Context()))
		wantAll(t, names(t, resources, err, func(r mcp.Resource) string { return r.URI }), suite.resources)
		templates, err := client.All(c.ResourceTemplates(t.Context()))
		wantAll(t, names(t, templates, err, func(r mcp.ResourceTemplate) string { return r.URITemplate }), []string{"test://template/{id}/data"})

		for _, tool := range tools {
			if tool.Description == "" {
				t.Errorf("%s has no description", tool.Name)
			}
		}
		wantText(t, c, tools[0].Name, args{}, "This is a simple text response for testing.")
		if _, err := c.ReadResource(t.Context(), resources[0].URI); err != nil {
			t.Error(err)
		}
	})
}

func TestPages(t *testing.T) {
	s := New(server.Options{PageSize: 4})
	defer s.Close()
	c := dial(t, s, "", client.Options{})
	defer c.Close()
	first, err := client.Do(t.Context(), c, mcp.Method[mcp.ListParams, mcp.ListToolsResult]{Name: mcp.MethodListTools}, mcp.ListParams{})
	if err != nil || len(first.Tools) != 4 || first.NextCursor == nil {
		t.Fatalf("got %d tools, %v; want a page of 4", len(first.Tools), err)
	}
	tools, err := client.All(c.Tools(t.Context()))
	wantAll(t, names(t, tools, err, func(tool mcp.Tool) string { return tool.Name }), suite.tools)
}
