package mcpgo

import (
	"context"
	"fmt"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// typed is the input of one of 1,000 tools: the digits make it a type of its own.
type typed[A, B, C any] struct {
	Query   string   `json:"query" jsonschema:"What to look for, in the syntax of the search box"`
	Repos   []string `json:"repos,omitempty" jsonschema:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" jsonschema:"How to order the results: created, updated or comments"`
	PerPage int      `json:"perPage,omitempty" jsonschema:"Results per page, 1 to 100"`
}

// typedTools adds tools of different types to a server.
type typedTools struct {
	server *server.MCPServer
	added  int
}

func newTypedServer() mcpServer {
	t := typedTools{server: server.NewMCPServer("bench", "1", server.WithToolCapabilities(true), server.WithInputSchemaValidation())}
	for _, add := range []func(*typedTools){
		addHundred[peer.D0], addHundred[peer.D1], addHundred[peer.D2], addHundred[peer.D3], addHundred[peer.D4],
		addHundred[peer.D5], addHundred[peer.D6], addHundred[peer.D7], addHundred[peer.D8], addHundred[peer.D9],
	} {
		add(&t)
	}
	return mcpServer{t.server}
}

func addHundred[A any](t *typedTools) {
	for _, add := range []func(*typedTools){
		addTen[A, peer.D0], addTen[A, peer.D1], addTen[A, peer.D2], addTen[A, peer.D3], addTen[A, peer.D4],
		addTen[A, peer.D5], addTen[A, peer.D6], addTen[A, peer.D7], addTen[A, peer.D8], addTen[A, peer.D9],
	} {
		add(t)
	}
}

func addTen[A, B any](t *typedTools) {
	for _, add := range []func(*typedTools){
		addOne[A, B, peer.D0], addOne[A, B, peer.D1], addOne[A, B, peer.D2], addOne[A, B, peer.D3], addOne[A, B, peer.D4],
		addOne[A, B, peer.D5], addOne[A, B, peer.D6], addOne[A, B, peer.D7], addOne[A, B, peer.D8], addOne[A, B, peer.D9],
	} {
		add(t)
	}
}

func addOne[A, B, C any](t *typedTools) {
	t.server.AddTool(
		mcp.NewTool(fmt.Sprintf(peer.SearchName, t.added), mcp.WithDescription(peer.SearchDescription), mcp.WithReadOnlyHintAnnotation(true),
			mcp.WithInputSchema[typed[A, B, C]]()),
		mcp.NewTypedToolHandler(func(context.Context, mcp.CallToolRequest, typed[A, B, C]) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(""), nil
		}))
	t.added++
}
