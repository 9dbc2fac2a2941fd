package mcpgo

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type echo struct {
	Message string `json:"message"`
}

type search struct {
	Query   string   `json:"query"`
	Repos   []string `json:"repos"`
	Sort    string   `json:"sort"`
	PerPage int      `json:"perPage"`
}

type mcpServer struct{ *server.MCPServer }

func newServer(tools int) mcpServer {
	s := server.NewMCPServer("bench", "1", server.WithToolCapabilities(true), server.WithInputSchemaValidation())
	s.AddTool(
		mcp.NewTool("echo", mcp.WithDescription(peer.EchoDescription), mcp.WithString("message", mcp.Required(), mcp.Description("What to say"))),
		mcp.NewTypedToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in echo) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(in.Message), nil
		}))
	for i := range tools - 1 {
		s.AddTool(searchTool(i), mcp.NewTypedToolHandler(func(context.Context, mcp.CallToolRequest, search) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(""), nil
		}))
	}
	return mcpServer{s}
}

func searchTool(i int) mcp.Tool {
	return mcp.NewTool(fmt.Sprintf(peer.SearchName, i), mcp.WithDescription(peer.SearchDescription), mcp.WithReadOnlyHintAnnotation(true),
		mcp.WithString("query", mcp.Required(), mcp.Description("What to look for, in the syntax of the search box"), mcp.MinLength(1), mcp.MaxLength(256)),
		mcp.WithArray("repos", mcp.Description("Repositories to look in, owner/name"), mcp.WithStringItems()),
		mcp.WithString("sort", mcp.Description("How to order the results"), mcp.Enum("created", "updated", "comments")),
		mcp.WithNumber("perPage", mcp.Description("Results per page"), mcp.Min(1), mcp.Max(100)))
}

// Stdio implements peer.Server.
func (s mcpServer) Stdio(context.Context) error { return server.ServeStdio(s.MCPServer) }

// Serve implements peer.Server.
func (s mcpServer) Serve(ctx context.Context, rwc io.ReadWriteCloser) error {
	lines := server.NewStdioServer(s.MCPServer)
	lines.SetErrorLogger(log.New(io.Discard, "", 0))
	return lines.Listen(ctx, rwc, rwc)
}

// Handler implements peer.Server.
func (s mcpServer) Handler(_ peer.Era, stream bool) (http.Handler, error) {
	if stream {
		return nil, peer.Unable("mcp-go answers a call by an event stream only where its handler sends a notification first.")
	}
	quiet := server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler))
	return server.NewStreamableHTTPServer(s.MCPServer, server.WithStateful(true), quiet), nil
}

// Change implements peer.Server.
func (s mcpServer) Change() {
	s.SendNotificationToAllClients(string(mcp.MethodNotificationToolsListChanged), nil)
}
