package interop

import (
	"path/filepath"

	"github.com/dowel-mcp/dowel/interop/peers/contract"
)

// toolCall is a call that a client makes. In Args and Want, ME stands for the client's name.
type toolCall struct {
	Tool  string         `json:"tool"`
	Args  map[string]any `json:"args"`
	Want  string         `json:"want"`
	Steps []float64      `json:"steps,omitzero"` // values of its progress notifications
}

// expected has the items and answers that every client must get from the gateway, in any revision.
type expected struct {
	Modern   string     `json:"modern"`
	Tools    []string   `json:"tools"`
	Prompts  []string   `json:"prompts"`
	Calls    []toolCall `json:"calls"`
	Progress []toolCall `json:"progress"`
	Cancel   []toolCall `json:"cancel"`
	Asks     []toolCall `json:"asks"`    // calls that ask; the client answers with its name
	Watched  []string   `json:"watched"` // URIs that several servers have; the gateway prefixes the server's name
}

const staticResource = "demo://resource/static/document/architecture.md"

func expectedOf(project string) expected {
	type args = map[string]any
	slow := args{"duration": 0.8, "steps": 4}
	city := args{"prompt": "Name a city."}
	who := args{"message": "Who are you?"}
	return expected{
		Modern: modernRevision,
		Tools: []string{
			"everything__echo", "weather__get_alerts", "kv__set", "reference__echo", "files__read_text_file", "stream__echo",
			"thinking__sequentialthinking", "memory__search_nodes", "old__echo", "modern__echo", "dowel__status",
		},
		Prompts: []string{
			"everything__" + contract.ArgsPrompt, "reference__args-prompt", "stream__args-prompt", "old__args-prompt", "modern__" + contract.ArgsPrompt,
		},
		Calls: []toolCall{
			{Tool: "everything__echo", Args: args{"message": "grüße, ME"}, Want: "grüße, ME"},
			{Tool: "kv__set", Args: args{"key": "of ME", "value": "value of ME"}},
			{Tool: "kv__get", Args: args{"key": "of ME"}, Want: "value of ME"},
			{Tool: "reference__get-sum", Args: args{"a": 19, "b": 23}, Want: "42"},
			{Tool: "files__write_file", Args: args{"path": filepath.Join(project, "ME.txt"), "content": "by ME"}, Want: "ME.txt"},
			{Tool: "files__read_text_file", Args: args{"path": filepath.Join(project, "ME.txt")}, Want: "by ME"},
			{Tool: "stream__echo", Args: args{"message": "ME"}, Want: "Echo: ME"},
			{Tool: "thinking__sequentialthinking", Args: args{"thought": "ME", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}, Want: "thoughtHistoryLength"},
			{Tool: "memory__search_nodes", Args: args{"query": "Ada"}, Want: "wrote the first program"},
			{Tool: "old__echo", Args: args{"message": "ME"}, Want: "Echo: ME"},
			{Tool: "modern__add", Args: args{"a": 19, "b": 23}, Want: "42"},
		},
		Progress: []toolCall{
			{Tool: "everything__" + contract.Progress, Args: args{}, Steps: []float64{0, 50, 100}},
			{Tool: "modern__" + contract.Progress, Args: args{}, Steps: []float64{0, 50, 100}},
			{Tool: "reference__trigger-long-running-operation", Args: slow, Steps: []float64{1, 2, 3, 4}},
			{Tool: "stream__trigger-long-running-operation", Args: slow, Steps: []float64{1, 2, 3, 4}},
			{Tool: "old__trigger-long-running-operation", Args: slow, Steps: []float64{1, 2, 3, 4}},
		},
		Cancel: []toolCall{
			{Tool: "modern__" + contract.Wait, Args: args{}},
			{Tool: "reference__trigger-long-running-operation", Args: args{"duration": 15, "steps": 60}},
			{Tool: "stream__trigger-long-running-operation", Args: args{"duration": 15, "steps": 60}},
		},
		// old is only asked while no other call runs: its one stream carries the questions of all
		// calls without saying which call they belong to, and dowel refuses ambiguous ones.
		Asks: []toolCall{
			{Tool: "everything__" + contract.AskUser, Args: who}, {Tool: "everything__" + contract.AskModel, Args: city},
			{Tool: "modern__" + contract.AskUser, Args: who}, {Tool: "modern__" + contract.AskModel, Args: city},
			{Tool: "reference__trigger-elicitation-request", Args: args{}}, {Tool: "reference__trigger-sampling-request", Args: city},
			{Tool: "stream__trigger-elicitation-request", Args: args{}}, {Tool: "stream__trigger-sampling-request", Args: city},
		},
		Watched: []string{
			"dowel://everything/" + contract.WatchedURI, "dowel://modern/" + contract.WatchedURI,
			"dowel://stream/" + staticResource, "dowel://old/" + staticResource,
		},
	}
}
