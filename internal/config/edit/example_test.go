package edit_test

import (
	"fmt"

	"github.com/dowel-mcp/dowel/internal/config/edit"
)

func ExampleSet() {
	text := []byte(`{
	// what I use
	"mcpServers": {
		"weather": {"command": "weather"}, // mine
	},
}
`)
	text, err := edit.Set(text, edit.JSON, []string{"mcpServers", "dowel"}, edit.Object{
		{Key: "command", Value: "dowel"},
		{Key: "args", Value: []string{"up", "--stdio"}},
	})
	fmt.Printf("%s%v", text, err)
	// Output:
	// {
	// 	// what I use
	// 	"mcpServers": {
	// 		"weather": {"command": "weather"}, // mine
	// 		"dowel": {"command": "dowel", "args": ["up", "--stdio"]},
	// 	},
	// }
	// <nil>
}

// Some files have a list of servers that each have a name.
func ExampleRemove() {
	text := []byte(`mcpServers:
  - name: weather
    command: weather
  # no longer needed
  - name: old
    url: https://example.com/mcp
`)
	text, err := edit.Remove(text, edit.YAML, []string{"mcpServers", "[name=old]"})
	fmt.Printf("%s%v", text, err)
	// Output:
	// mcpServers:
	//   - name: weather
	//     command: weather
	// <nil>
}
