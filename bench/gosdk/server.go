package gosdk

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type echo struct {
	Message string `json:"message" jsonschema:"What to say"`
}

type search struct {
	Query   string   `json:"query" jsonschema:"What to look for, in the syntax of the search box"`
	Repos   []string `json:"repos,omitempty" jsonschema:"Repositories to look in, owner/name"`
	Sort    string   `json:"sort,omitempty" jsonschema:"How to order the results: created, updated or comments"`
	PerPage int      `json:"perPage,omitempty" jsonschema:"Results per page, 1 to 100"`
}

type server struct{ *mcp.Server }

func newServer(tools int) server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: peer.EchoDescription},
		func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, nil, nil
		})
	for i := range tools - 1 {
		mcp.AddTool(s, &mcp.Tool{
			Name: fmt.Sprintf(peer.SearchName, i), Description: peer.SearchDescription, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, func(context.Context, *mcp.CallToolRequest, search) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	s.AddResource(&mcp.Resource{URI: peer.Watched, Name: "watched"}, read)
	return server{s}
}

func read(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: peer.Watched, Text: "watched"}}}, nil
}

// Stdio implements peer.Server.
func (s server) Stdio(ctx context.Context) error { return s.Run(ctx, &mcp.StdioTransport{}) }

// Serve implements peer.Server.
func (s server) Serve(ctx context.Context, rwc io.ReadWriteCloser) error {
	return s.Run(ctx, &mcp.IOTransport{Reader: rwc, Writer: rwc})
}

// Handler implements peer.Server.
func (s server) Handler(era peer.Era, stream bool) (http.Handler, error) {
	same := func(*http.Request) *mcp.Server { return s.Server }
	return mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{Stateless: era == peer.Modern, JSONResponse: !stream}), nil
}

// Change implements peer.Server.
func (s server) Change() {
	// ResourceUpdated fails for nil arguments only.
	_ = s.ResourceUpdated(context.Background(), &mcp.ResourceUpdatedNotificationParams{URI: peer.Watched})
}
