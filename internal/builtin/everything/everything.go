// Package everything is an MCP server that shows every feature of the protocol: for tests of
// clients, for demonstrations, and as an example of a server.
//
// The official conformance suite requires the items named test_…, in all revisions. The same
// handlers serve both eras of the protocol.
package everything

import (
	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Version is the version that the server reports.
const Version = "1.0.0"

// New returns a server. The options are the options of [server.New]; use a small PageSize to see
// lists with several pages. Info and Instructions have defaults.
func New(opts ...server.Options) *server.Server {
	var o server.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Info.Title == "" {
		o.Info.Title = "Everything"
		o.Info.Description = "Every feature of the Model Context Protocol, for testing clients"
		o.Info.WebsiteURL = "https://github.com/dowel-mcp/dowel"
	}
	if o.Instructions == "" {
		o.Instructions = "This server is for testing clients. Each of its tools only shows a feature of the protocol."
	}
	s := server.New("everything", Version, &o)
	addContent(s) // first, because test suites call the first tool without arguments
	addBasics(s)
	addStructured(s)
	addSchemas(s)
	addLong(s)
	addAsking(s)
	addInputRequired(s)
	addResources(s)
	addPrompts(s)
	addChanges(s)
	return s
}

// none is the input of a tool that takes no arguments.
type none = struct{}

// hints are the annotations of tools that change nothing.
var hints = server.ToolOptions{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}}
