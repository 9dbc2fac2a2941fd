package weather

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/schema"
)

// textAndStructured is a result of text for reading and structured content for programs.
func textAndStructured(text string, structured any) (*mcp.CallToolResult, error) {
	raw, err := schema.Encode(structured)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(text)}, StructuredContent: raw}, nil
}

// schemaOf returns the output schema of a tool that returns a T through textAndStructured.
func schemaOf[T any]() json.RawMessage {
	s, err := schema.For[T](schema.Options{Output: true})
	if err != nil {
		panic(err) // a mistake in the type
	}
	return s.JSON()
}
