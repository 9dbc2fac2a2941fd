package everything

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestBasics(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		wantText(t, c, "test_simple_text", nil, "This is a simple text response for testing.")
		wantText(t, c, "echo", args{"message": "Hello, 世界"}, "Hello, 世界")
		wantText(t, c, "add", args{"a": 1.5, "b": 2}, `{"sum":3.5}`)
		if got := call(t, c, "add", args{"a": "1"}); !got.IsError {
			t.Errorf("adding a text: got %+v, want an error", got)
		}
		if got := call(t, c, "add", args{"a": 1, "b": 2}); (got.StructuredContent == nil) != (r < mcp.Revision20250618) {
			t.Errorf("structured content %s in %s", got.StructuredContent, r)
		}
		wantText(t, c, "test_x_mcp_header", args{"region": "Hello"}, `region "Hello", level 0`)
		got := call(t, c, "test_error_handling", args{})
		if !got.IsError || got.Content[0].Text != "This tool intentionally returns an error for testing" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestContent(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		got := call(t, c, "test_image_content", nil).Content[0]
		if got.Type != mcp.ContentImage || got.MIMEType != "image/png" || !bytes.Equal(got.Data, pixel) {
			t.Errorf("image: got %+v", got)
		}
		got = call(t, c, "test_audio_content", nil).Content[0]
		if r >= mcp.Revision20250326 && (got.Type != mcp.ContentAudio || got.MIMEType != "audio/wav" || !bytes.Equal(got.Data, blip)) {
			t.Errorf("audio: got %+v", got)
		}
		got = call(t, c, "test_embedded_resource", nil).Content[0]
		if got.Resource == nil || got.Resource.URI != "test://embedded-resource" || got.Resource.MIMEType != "text/plain" || got.Resource.Text == "" {
			t.Errorf("embedded resource: got %+v", got)
		}
		mixed := call(t, c, "test_multiple_content_types", nil).Content
		if len(mixed) != 3 || mixed[0].Type != mcp.ContentText || mixed[1].Type != mcp.ContentImage || mixed[2].Resource.MIMEType != "application/json" {
			t.Errorf("mixed: got %+v", mixed)
		}
		for _, link := range call(t, c, "resource_links", nil).Content[1:] {
			if r < mcp.Revision20250618 {
				continue // the server sends links as text, because the revision has no links
			}
			if _, err := c.ReadResource(t.Context(), link.Link.URI); err != nil {
				t.Error(err)
			}
		}
		annotated := call(t, c, "annotated_content", nil).Content
		if len(annotated) != 2 || annotated[0].Annotations.Audience[0] != mcp.RoleUser {
			t.Errorf("annotated: got %+v", annotated)
		}
	})
}

func TestStructured(t *testing.T) {
	kinds := map[string]string{
		"structured_object":  `{"name":"Saturn","moons":["Titan","Rhea"],"radius":58232,"rings":{"visible":true}}`,
		"structured_array":   `[{"name":"Mars","moons":["Phobos","Deimos"],"radius":3389.5},{"name":"Saturn","moons":["Titan","Rhea"],"radius":58232,"rings":{"visible":true}}]`,
		"structured_map":     `{"Mars":2,"Saturn":274}`,
		"structured_string":  `"Saturn"`,
		"structured_number":  `58232.5`,
		"structured_integer": `9007199254740993`,
		"structured_boolean": `true`,
		"structured_null":    `null`,
	}
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		if _, err := client.All(c.Tools(t.Context())); err != nil { // so that the client checks results against the schemas
			t.Fatal(err)
		}
		for tool, want := range kinds {
			got := call(t, c, tool, nil)
			if got.Content[0].Text != want {
				t.Errorf("%s: got the text %s, want %s", tool, got.Content[0].Text, want)
			}
			structured := r.Modern() || r >= mcp.Revision20250618 && want[0] == '{'
			if structured != (string(got.StructuredContent) == want) {
				t.Errorf("%s: got %s, structured: %v", tool, got.StructuredContent, structured)
			}
		}
	})
}

func TestSchema202012(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, _ mcp.Revision, c *client.Client) {
		tools, err := client.All(c.Tools(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(tools, func(tool mcp.Tool) bool { return tool.Name == "json_schema_2020_12_tool" })
		var got, want any
		if json.Unmarshal(tools[i].InputSchema, &got) != nil || json.Unmarshal([]byte(schema202012), &want) != nil {
			t.Fatal("a schema is not valid JSON")
		}
		gotText, _ := json.Marshal(got)
		wantText, _ := json.Marshal(want)
		if !bytes.Equal(gotText, wantText) {
			t.Errorf("got %s, want %s", gotText, wantText)
		}
		for _, test := range []struct {
			in    args
			valid bool
		}{
			{args{"phone": "1", "contactMethod": "phone"}, true},
			{args{"email": "a@b.example", "address": args{"city": "Bern"}}, true},
			{args{"contactMethod": "phone", "email": "a@b.example"}, false},
			{args{"name": "x"}, false},
			{args{"email": "a@b.example", "address": args{"city": 1}}, false},
			{args{"email": "a@b.example", "other": 1}, false},
		} {
			if got := call(t, c, "json_schema_2020_12_tool", test.in); got.IsError == test.valid {
				t.Errorf("%v: got %+v, want valid: %v", test.in, got, test.valid)
			}
		}
	})
}

func TestProgress(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, _ mcp.Revision, c *client.Client) {
		var steps []float64
		begun := time.Now()
		call(t, c, "test_tool_with_progress", nil, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
			if p.Total != 100 {
				t.Errorf("got the total %v", p.Total)
			}
			steps = append(steps, p.Progress)
		}})
		if !slices.Equal(steps, []float64{0, 50, 100}) || time.Since(begun) != 100*time.Millisecond {
			t.Errorf("got the progress %v in %v", steps, time.Since(begun))
		}
		wantText(t, c, "test_tool_with_progress", nil, "Progress was reported.")
		wantText(t, c, "test_reconnection", nil, "The result came through.")
	})
}

func TestLogging(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, r mcp.Revision, c *client.Client) {
		var logged []string
		opts := client.CallOptions{LogLevel: mcp.LevelInfo, OnLog: func(p mcp.LoggingMessageParams) {
			logged = append(logged, string(p.Level)+" "+p.Logger+" "+string(p.Data))
		}}
		call(t, c, "test_tool_with_logging", nil, opts)
		want := []string{`info  "Tool execution started"`, `info  "Tool processing data"`, `info  "Tool execution completed"`}
		if !slices.Equal(logged, want) {
			t.Errorf("got %q, want %q", logged, want)
		}
		logged = nil
		call(t, c, "test_logging_tool", nil, opts)
		if want := []string{`info everything {"message":"Logged by test_logging_tool","answer":42}`}; !slices.Equal(logged, want) {
			t.Errorf("got %q, want %q", logged, want)
		}
	})
}

func TestSlow(t *testing.T) {
	forRevisions(t, nil, func(t *testing.T, _ mcp.Revision, c *client.Client) {
		begun := time.Now()
		wantText(t, c, "slow", args{"seconds": 60}, "Took 1m0s.")
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("took %v, want a minute", took)
		}
		wantText(t, c, "slow", args{}, "Took 5s.")

		ctx, cancel := context.WithCancel(t.Context())
		begun = time.Now()
		_, err := client.Call[string](ctx, c, "slow", args{"seconds": 600}, client.CallOptions{OnProgress: func(p mcp.ProgressParams) {
			if p.Progress >= 2 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || time.Since(begun) != time.Minute {
			t.Errorf("got %v after %v, want the call cancelled after a minute", err, time.Since(begun))
		}
		if got := call(t, c, "slow", args{"seconds": 601}); !got.IsError || !strings.Contains(got.Content[0].Text, "600") {
			t.Errorf("got %+v, want an error that names the limit", got)
		}
	})
}
