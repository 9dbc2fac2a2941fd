package everything

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// schema202012 uses keywords that schemas inferred from Go types do not have. The conformance suite
// requires that clients get it unchanged.
const schema202012 = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {
        "street": {"type": "string"},
        "city": {"type": "string"}
      }
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [
    {"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}
  ],
  "if": {
    "properties": {"contactMethod": {"const": "phone"}},
    "required": ["contactMethod"]
  },
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

// addSchemas adds tools with special input schemas.
func addSchemas(s *server.Server) {
	server.RawTool(s, mcp.Tool{
		Name: "json_schema_2020_12_tool", Description: "A tool whose input schema uses features of JSON Schema 2020-12.", InputSchema: json.RawMessage(schema202012),
		Annotations: hints.Annotations,
	}, func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("The arguments match the schema: " + string(arguments))}}, nil
	})

	// Over HTTP the client repeats region in the header Mcp-Param-Region, where a proxy can route
	// by it.
	server.Tool(s, "test_x_mcp_header", "Takes an argument that is also sent as an HTTP header.", func(_ context.Context, in struct {
		Region string `json:"region" header:"Region" doc:"The region, also sent in the header"`
		Level  int    `json:"level,omitzero" doc:"A level, sent only in the body"`
	}) (string, error) {
		return fmt.Sprintf("region %q, level %d", in.Region, in.Level), nil
	}, hints)
}
