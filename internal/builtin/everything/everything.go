// Package everything is an MCP server that shows every feature of the protocol: for tests of clients, for demonstrations,
// and to read. It is written with the public API alone, as any server would be.
//
// What is named test_… is what the official conformance suite asks of a server, in all revisions; the same handlers serve
// both of the protocol's eras.
package everything

import (
	"context"
	"time"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

// Version is that of the server.
const Version = "1.0.0"

// New returns a server. The options are those of [server.New], such as PageSize to see pages; Info and Instructions have
// defaults of their own.
func New(opts ...server.Options) *server.Server {
	var o server.Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if o.Info.Title == "" {
		o.Info.Title = "Everything"
		o.Info.Description = "Every feature of the Model Context Protocol, to try a client with"
		o.Info.WebsiteURL = "https://github.com/dowel-mcp/dowel"
	}
	if o.Instructions == "" {
		o.Instructions = "This server is for testing clients. Its tools do nothing beyond showing a feature of the protocol."
	}
	s := server.New("everything", Version, &o)
	addContent(s) // first: suites call the first tool without arguments
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

// hints are the annotations of tools that only show something.
var hints = server.ToolOptions{Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true), OpenWorldHint: new(false)}}

// pause waits, unless the call is cancelled.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
