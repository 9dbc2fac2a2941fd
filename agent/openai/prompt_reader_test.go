package openai

import (
	"fmt"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
)

// The cuts between pieces do not change the result.
func TestPromptReaderPieces(t *testing.T) {
	for _, tt := range []struct{ reply, text, calls string }{
		{"Hello, `a` and ``` and <b>.", "Hello, `a` and ``` and <b>.", ""},
		{"Look:\n```json\n{\"name\":\"x\"}\n```\nso", "Look:\n```json\n{\"name\":\"x\"}\n```\nso", ""},
		{"A\n```tool_call\n{\"name\":\"a\",\"arguments\":{\"s\":\"``` <tool_call>\"}}\n```\nmade up", "A\n", `a{"s":"` + "``` <tool_call>" + `"} `},
		{"```tool_calls\n{\"name\":\"a\"}{\"name\":\"b\"}\n```", "", "a{} b{} "},
		{"<tool_call>{\"name\":\"a\",\"arguments\":\"{\\\"n\\\":1}\"}</tool_call>\n<tool_call>{\"name\":\"b\"}", "", `a{"n":1} b{} `},
		{"```tool_call\n{\"name\":\"a\"}\n```\nIt says 1.\n```tool_call\n{\"name\":\"b\"}\n```", "", "a{} "},
		{"```tool_call\n{broken\n```\n", "", `unknown"{broken" `},
		{"```tool_call", "```tool_call", ""},
	} {
		for size := 1; size <= len(tt.reply); size++ {
			p := newPromptReader([]mcp.Tool{{Name: "a"}, {Name: "b"}})
			text := ""
			for from := 0; from < len(tt.reply); from += size {
				text += p.readPiece(tt.reply[from:min(from+size, len(tt.reply))])
			}
			text += p.readRest()
			calls := ""
			for _, use := range p.toolUses(false) {
				calls += fmt.Sprintf("%s%s ", use.Name, use.Input)
			}
			if text != tt.text || calls != tt.calls {
				t.Errorf("%q in pieces of %d: %q and %s, want %q and %s", tt.reply, size, text, calls, tt.text, tt.calls)
				break
			}
		}
	}
}
