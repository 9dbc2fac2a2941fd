//go:build linux

package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// shapesSchema has a property for each kind of field.
const shapesSchema = `{
  "type": "object",
  "properties": {
    "title": {"type": "string", "minLength": 1, "maxLength": 80, "description": "One line that says what is wrong."},
    "note": {"type": ["string", "null"], "description": "Absent, null and empty are different."},
    "number": {"type": "integer", "description": "An identifier of any length."},
    "urgent": {"type": "boolean"},
    "severity": {"oneOf": [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]},
    "zone": {"enum": ["eu-central-1", "eu-west-1", "us-east-1", "us-west-2", "ap-south-1", "sa-east-1", "af-south-1"]},
    "steps": {"type": "array", "minItems": 1, "items": {"type": "object", "properties": {"do": {"type": "string"}, "times": {"type": "integer", "minimum": 1}}, "required": ["do"], "additionalProperties": false}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    "place": {"type": "array", "prefixItems": [{"type": "number", "title": "latitude"}, {"type": "number", "title": "longitude"}], "items": false},
    "assignee": {"oneOf": [{"$ref": "#/$defs/Person"}, {"$ref": "#/$defs/Team"}]},
    "tree": {"$ref": "#/$defs/Node"}
  },
  "required": ["title", "steps"],
  "additionalProperties": false,
  "$defs": {
    "Person": {"type": "object", "properties": {"kind": {"const": "person"}, "login": {"type": "string"}}, "required": ["kind", "login"]},
    "Team": {"type": "object", "properties": {"kind": {"const": "team"}, "name": {"type": "string"}, "size": {"type": "integer"}}, "required": ["kind", "name"]},
    "Node": {"type": "object", "properties": {"text": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}
  }
}`

// serveShapes is a server with arguments of each shape, which it returns, and a result that breaks
// its own schema.
func serveShapes() {
	s := server.New("tracker", "1.0.0", nil)
	yes := true
	server.RawTool(s, mcp.Tool{Name: "file_report", Title: "File a report", Description: "Files a report and returns it.", InputSchema: json.RawMessage(shapesSchema),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`), Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes},
	}, func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text("filed")}, StructuredContent: []byte(`{"id":81,"got":` + string(arguments) + `}`)}, nil
	})
	server.Prompt(s, "triage", "Sorts reports.", func(_ context.Context, in struct {
		Since string `json:"since" doc:"A date"`
	}) (string, error) {
		return "Sort the reports since " + in.Since, nil
	})
	// The server checks its results, so the wrong one is made behind it.
	broken := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (*mcp.Result, error) {
		res, err := s.ServeMCP(ctx, req)
		if err == nil && req.Method == mcp.MethodCallTool {
			res.Raw, err = mcp.Encode(res.Value)
			res.Raw, res.Value = bytes.Replace(res.Raw, []byte(`"id":81`), []byte(`"id":"R-81"`), 1), nil
		}
		return res, err
	})
	if err := stdio.Serve(context.Background(), broken); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
