package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
)

// A long reply in small pieces takes time in proportion to its length.
func TestLongReply(t *testing.T) {
	const pieces, piece = 300_000, "word "
	argument, err := json.Marshal(map[string]string{"text": strings.Repeat("``` word ", 100) + strings.Repeat(piece, pieces)})
	if err != nil {
		t.Fatal(err)
	}
	tools := []mcp.Tool{{Name: "write"}}
	for name, play := range map[string]func() int{
		"text": func() int {
			r := (&model{}).newReply(nil)
			for range pieces {
				r.addText(nil, piece)
			}
			return r.text.Len()
		},
		"thoughts": func() int {
			var thought thoughts
			for range pieces {
				thought.addDelta(nil, new(piece))
			}
			return len(*thought.Reasoning)
		},
		"a call whose name and id are repeated": func() int {
			r := (&model{}).newReply(tools)
			for from := 0; from < len(argument); from += len(piece) {
				part := string(argument[from:min(from+len(piece), len(argument))])
				r.calls.addFragment(fragment{ID: "1", Function: calledFunction{Name: "write", Arguments: part}})
			}
			return len(r.calls.toolUses(false)[0].Input)
		},
		"a call in the text": func() int {
			r := (&model{opts: Options{ToolsInPrompt: true}}).newReply(tools)
			text := fmt.Sprintf("%s\n{\"name\":\"write\",\"arguments\":%s}\n```", callFence, argument)
			for from := 0; from < len(text); from += len(piece) {
				r.addText(nil, text[from:min(from+len(piece), len(text))])
			}
			r.endText()
			return len(r.prompt.toolUses(false)[0].Input)
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			if n := play(); n < pieces*len(piece) {
				t.Errorf("%d bytes came of it", n)
			}
			took := time.Since(began)
			t.Logf("%d bytes in %v", pieces*len(piece), took)
			if took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}
