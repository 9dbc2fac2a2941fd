// Command minimal is the smallest server that a user of mcp-go would write, with validation of
// input.
package main

import (
	"context"
	"log"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type echo struct {
	Message string `json:"message"`
}

func say(_ context.Context, _ mcp.CallToolRequest, in echo) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultText(in.Message), nil
}

func main() {
	s := server.NewMCPServer("minimal", "1", server.WithToolCapabilities(true), server.WithInputSchemaValidation())
	tool := mcp.NewTool("echo", mcp.WithDescription("Says it again."), mcp.WithString("message", mcp.Required(), mcp.Description("What to say")))
	s.AddTool(tool, mcp.NewTypedToolHandler(say))
	if err := server.ServeStdio(s); err != nil {
		log.Fatal(err)
	}
}
