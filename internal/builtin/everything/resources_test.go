package everything

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestResources(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		for uri, want := range map[string]mcp.ResourceContents{
			"test://static-text":       {MIMEType: "text/plain", Text: "This is the content of the static text resource."},
			"test://static-binary":     {MIMEType: "image/png", Blob: pixel},
			"test://template/123/data": {MIMEType: "application/json", Text: `{"id":"123","templateTest":true,"data":"Data for ID: 123"}`},
			"test://watched-resource":  {MIMEType: "text/plain", Text: "Updated 0 times."},
		} {
			result, err := c.ReadResource(t.Context(), uri)
			if err != nil {
				t.Error(err)
				continue
			}
			got := result.Contents[0]
			if got.URI != uri || got.MIMEType != want.MIMEType || got.Text != want.Text || !bytes.Equal(got.Blob, want.Blob) {
				t.Errorf("%s: got %+v, want %+v", uri, got, want)
			}
		}
		const unknown = "test://nonexistent-resource-for-conformance-testing"
		_, err := c.ReadResource(t.Context(), unknown)
		protocol, ok := errors.AsType[*mcp.Error](err)
		if !ok || !bytes.Contains(protocol.Data, []byte(unknown)) || r.Modern() && protocol.Code != -32602 {
			t.Errorf("%s: got %v", unknown, err)
		}
	})
}

func TestPrompts(t *testing.T) {
	a := &answerer{content: filled}
	forRevisions(t, a, func(t *testing.T, r mcp.Revision, c *client.Client) {
		get := func(name string, args map[string]string) []mcp.PromptMessage {
			t.Helper()
			result, err := c.GetPrompt(t.Context(), name, args)
			if err != nil {
				t.Fatal(err)
			}
			return result.Messages
		}
		if got := get("test_simple_prompt", nil)[0].Content.Text; got != "This is a simple prompt for testing." {
			t.Errorf("got %q", got)
		}
		if got := get("test_prompt_with_arguments", map[string]string{"arg1": "hello", "arg2": "world"})[0].Content.Text; got != "Prompt with arguments: arg1='hello', arg2='world'" {
			t.Errorf("got %q", got)
		}
		if got := get("test_prompt_with_embedded_resource", map[string]string{"resourceUri": "test://x"})[0].Content.Resource; got == nil || got.URI != "test://x" || got.Text == "" {
			t.Errorf("got %+v", got)
		}
		if got := get("test_prompt_with_image", nil); len(got) != 2 || got[0].Content.MIMEType != "image/png" {
			t.Errorf("got %+v", got)
		}
		if _, err := c.GetPrompt(t.Context(), "test_prompt_with_arguments", nil); err == nil {
			t.Error("arguments are missing, and there is no error")
		}
		if r < mcp.Revision20250618 {
			return
		}
		if got := get("test_input_required_result_prompt", nil)[0].Content.Text; got != "Use this context: tests" {
			t.Errorf("got %q", got)
		}
	})
}

func TestCompletes(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		if r < mcp.Revision20250326 {
			return // the capability came later, so the client does not ask
		}
		for _, test := range []struct {
			ref             mcp.CompletionRef
			argument, typed string
			want            []string
		}{
			{mcp.PromptRef("test_prompt_with_arguments"), "arg1", "par", []string{"paris", "park", "party"}},
			{mcp.PromptRef("test_prompt_with_arguments"), "arg2", "x", []string{}},
			{mcp.ResourceRef("test://template/{id}/data"), "id", "12", []string{"12", "123"}},
		} {
			got, err := c.Complete(t.Context(), test.ref, test.argument, test.typed, nil)
			if err != nil || !slices.Equal(got.Values, test.want) {
				t.Errorf("%v %s %q: got %v, %v; want %q", test.ref, test.argument, test.typed, got, err, test.want)
			}
		}
	})
}

func TestChanges(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, _ mcp.Revision, c *client.Client) {
		watch, err := c.Watch(t.Context(), mcp.SubscriptionFilter{
			ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{watchedURI},
		})
		if err != nil {
			t.Fatal(err)
		}
		changes := make(chan client.Change, 100)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for change, err := range watch.Changes() {
				if err != nil {
					t.Error(err)
				}
				changes <- change
			}
		}()
		synctest.Wait() // a legacy session begins to listen on its own, shortly after it was initialized
		steps := []struct{ tool, method, uri, text string }{
			{"test_trigger_tool_change", mcp.NotificationToolsChanged, "", "Added the tool dynamic_tool."},
			{"test_trigger_prompt_change", mcp.NotificationPromptsChanged, "", "Added the prompt dynamic_prompt."},
			{"test_trigger_resource_change", mcp.NotificationResourcesChanged, "", "Added the resource test://dynamic-resource."},
			{"test_trigger_resource_update", mcp.NotificationResourceUpdated, watchedURI, "The resource has changed."},
			{"test_trigger_tool_change", mcp.NotificationToolsChanged, "", "Removed the tool dynamic_tool."},
			{"test_trigger_prompt_change", mcp.NotificationPromptsChanged, "", "Removed the prompt dynamic_prompt."},
			{"test_trigger_resource_change", mcp.NotificationResourcesChanged, "", "Removed the resource test://dynamic-resource."},
			{"test_trigger_tool_change", mcp.NotificationToolsChanged, "", "Added the tool dynamic_tool."},
		}
		for _, step := range steps {
			wantText(t, c, step.tool, nil, step.text)
			if change := <-changes; change.Method != step.method || change.URI != step.uri {
				t.Errorf("%s: got %+v, want %s %s", step.tool, change, step.method, step.uri)
			}
		}
		wantText(t, c, "dynamic_tool", nil, "I was added.")
		result, err := c.ReadResource(t.Context(), watchedURI)
		if err != nil || result.Contents[0].Text != "Updated 1 times." {
			t.Errorf("got %+v, %v", result, err)
		}
		watch.Close()
		<-ended
	})
}
