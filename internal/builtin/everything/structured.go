package everything

import (
	"context"
	"encoding/json"

	"github.com/dowel-mcp/dowel/server"
)

// From 2026-07-28 on, structured content may be any JSON value; in older revisions, values other
// than objects are sent as text only. A result of the type string becomes text; a named string type
// becomes structured content.
type (
	word   string
	planet struct {
		Name   string   `json:"name"`
		Moons  []string `json:"moons"`
		Radius float64  `json:"radius" doc:"Kilometres"`
		Rings  *rings   `json:"rings,omitempty"`
	}
	rings struct {
		Visible bool `json:"visible"`
	}
)

var (
	mars   = planet{Name: "Mars", Moons: []string{"Phobos", "Deimos"}, Radius: 3389.5}
	saturn = planet{Name: "Saturn", Moons: []string{"Titan", "Rhea"}, Radius: 58232, Rings: &rings{Visible: true}}
)

// addStructured adds a tool for each kind of JSON value.
func addStructured(s *server.Server) {
	server.Tool(s, "structured_object", "Returns an object.", returnConstant(saturn), hints)
	server.Tool(s, "structured_array", "Returns an array of objects.", returnConstant([]planet{mars, saturn}), hints)
	server.Tool(s, "structured_map", "Returns an object with any members.", returnConstant(map[string]int{"Mars": 2, "Saturn": 274}), hints)
	server.Tool(s, "structured_string", "Returns a string.", returnConstant(word("Saturn")), hints)
	server.Tool(s, "structured_number", "Returns a number.", returnConstant(58232.5), hints)
	server.Tool(s, "structured_integer", "Returns an integer that a float cannot hold.", returnConstant(9007199254740993), hints)
	server.Tool(s, "structured_boolean", "Returns a boolean.", returnConstant(true), hints)
	server.Tool(s, "structured_null", "Returns null.", returnConstant(json.RawMessage("null")), hints)
}

// returnConstant returns a handler that returns the value.
func returnConstant[T any](value T) func(context.Context, none) (T, error) {
	return func(context.Context, none) (T, error) { return value, nil }
}
