package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// argument is the path in the calls of limitedContent.
const argument = "/a/path/of/more/than/forty/characters/in/the/arguments"

// limitedContent returns a result as the model gets it.
func limitedContent(t *testing.T, o agent.Options, res mcp.CallToolResult) []mcp.Content {
	t.Helper()
	b := newBench("read")
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &res, nil
	}
	a := newTrustingAgent(&script{t: t, replies: []reply{says("", `read {"path":"`+argument+`"}`), says("done")}}, b, &o)
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	return a.Messages()[2].Content[0].ToolResult.Content
}

// The model gets no more text than the limit, from any mix of blocks. Images stay as they are.
func TestBounds(t *testing.T) {
	many := func(n int, c mcp.Content) (all []mcp.Content) {
		for range n {
			all = append(all, c)
		}
		return all
	}
	image := mcp.Image([]byte("png"), "image/png")
	text := mcp.Embed(mcp.ResourceContents{URI: "file:///log", MIMEType: "text/plain", Text: strings.Repeat("line\n", 1000)})
	for _, tt := range []struct {
		name    string
		content []mcp.Content
		blocks  int
		want    []string // in the first text
	}{
		{"an embedded resource", []mcp.Content{text}, 1, []string{"[The resource file:///log:]\nline\n", `kept as "result-1"`}},
		{"many texts", many(10_000, mcp.Text("ab")), 1, []string{"ab\n\nab", `kept as "result-1"`, "ab\n\nab"}},
		{"many links", many(1000, mcp.Link(mcp.Resource{URI: "file:///a", Name: "a", Description: "A file"})), 1, []string{"[link to a: file:///a (A file)]"}},
		{"links without a description", many(1000, mcp.Link(mcp.Resource{URI: "file:///a", Name: "a"})), 1, []string{"[link to a: file:///a]"}},
		{"with an image", []mcp.Content{mcp.Text("see"), image, text}, 2, []string{"see\n\n[The resource file:///log:]"}},
		{"short", []mcp.Content{mcp.Text("see"), mcp.Link(mcp.Resource{URI: "file:///a", Name: "a"})}, 2, []string{"see"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := limitedContent(t, agent.Options{Limits: agent.Limits{MaxResult: 1000}}, mcp.CallToolResult{Content: tt.content})
			if len(got) != tt.blocks {
				t.Fatalf("%d blocks: %.300v", len(got), got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got[0].Text, want) || len(got[0].Text) > 1300 {
					t.Errorf("%s", got[0].Text)
				}
			}
			if tt.name == "with an image" && !bytes.Equal(got[1].Data, image.Data) {
				t.Errorf("%+v", got[1])
			}
		})
	}
}

// Binaries that are too large, alone or together, are left out with a note.
func TestMedia(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 100)
	large := mcp.Embed(mcp.ResourceContents{URI: "file:///a.zip", MIMEType: "application/zip", Blob: append(data, 'x')})
	content := []mcp.Content{mcp.Image(data, "image/png"), large, mcp.Audio(append(data, 'x'), "audio/wav"),
		mcp.Image(data, "image/png"), mcp.Image(data, "image/png"), mcp.Image(data, "image/png"), mcp.Image(data, "image/png")}
	got := limitedContent(t, agent.Options{Limits: agent.Limits{MaxMedia: 100}}, mcp.CallToolResult{Content: content})
	if content[1].Resource == nil {
		t.Error("the tool's own result has been changed")
	}
	var all []string
	for _, c := range got {
		all = append(all, c.String())
	}
	const image, left = "[image, image/png, 100 bytes]", ": it is too large, and was left out."
	same(t, all, image, "[resource file:///a.zip, application/zip, 101 bytes]"+left, "[audio, audio/wav, 101 bytes]"+left, image, image, image, image+left)
	if got := limitedContent(t, agent.Options{Limits: agent.Limits{MaxMedia: -1}}, mcp.CallToolResult{Content: []mcp.Content{large}}); got[0].Resource == nil {
		t.Errorf("%+v", got)
	}
	if got := limitedContent(t, agent.Options{}, mcp.CallToolResult{Content: []mcp.Content{mcp.Image(make([]byte, 5<<20+1), "image/png")}}); got[0].Type != mcp.ContentText {
		t.Errorf("%+v", got[0].Type)
	}
}

// A result of 5 MiB, structured and as text, takes little time and memory.
func TestLargeResult(t *testing.T) {
	var rows strings.Builder
	for i := 0; rows.Len() < 5<<20; i++ {
		fmt.Fprintf(&rows, `{"n":%d,"text":"ö"},`, i)
	}
	structured := `{"rows":[` + strings.TrimSuffix(rows.String(), ",") + `]}`
	res := mcp.CallToolResult{Content: []mcp.Content{mcp.Text(strings.Replace(structured, "{", "{ ", 1))}, StructuredContent: []byte(structured)}
	b := newBench("read")
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &res, nil
	}
	m := &script{t: t, replies: []reply{says("", "read {}"), says("", `read_result {"result":"result-1","offset":4000000}`, `read_result {"result":"result-1","search":"\"n\":99999,"}`), says("done")}}
	a := newTrustingAgent(m, b, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	t.Logf("%v, %d MiB", took, (after.TotalAlloc-before.TotalAlloc)>>20)
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 40 || took > time.Minute {
		t.Errorf("%v, %d MiB", took, mib)
	}
	if got := a.Messages()[2].Content[0].ToolResult.Content; len(got) != 1 || len([]rune(got[0].Text)) > 25_300 {
		t.Errorf("%d blocks, %d", len(got), len(got[0].Text))
	}
	for i, want := range []string{"characters are left: read on from offset 4010000", `"n":99999,`} {
		if text := a.Messages()[4].Content[i].ToolResult.Content[0].Text; !strings.Contains(text, want) || len(text) > 40_000 {
			t.Errorf("%d: %.200s … %d", i, text, len(text))
		}
	}
}

// read_result returns no more than a result may have.
func TestReadBounded(t *testing.T) {
	b := newBench("read")
	b.run = func(context.Context, mcp.ToolUse, func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(strings.Repeat(strings.Repeat("ö", 300)+"\n", 1000))}}, nil
	}
	for most, want := range map[int]int{100: 100, 4000: 4000, 0: 20_000, 50_000: 20_000} {
		m := &script{t: t, replies: []reply{says("", "read {}"), says("", `read_result {"result":"result-1","search":"ö"}`, `read_result {"result":"result-1"}`, `read_result {"result":"result-1","limit":20000}`), says("done")}}
		a := newTrustingAgent(m, b, &agent.Options{Limits: agent.Limits{MaxResult: most}})
		if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
			t.Error(err)
		}
		for i, c := range a.Messages()[4].Content {
			if n, want := len([]rune(c.ToolResult.Content[0].Text)), []int{want, min(want, 10_000), want}[i]; n > want+100 || n < want/2 {
				t.Errorf("%d, call %d: %d characters, want about %d", most, i, n, want)
			}
		}
		for _, tool := range m.conversations[1].Tools {
			if schema := fmt.Sprintf(`"maximum":%d,`, want); tool.Name == "read_result" && !strings.Contains(string(tool.InputSchema), schema) {
				t.Errorf("%d: %s", most, tool.InputSchema)
			}
		}
	}
}
