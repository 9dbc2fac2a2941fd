package mcpgo

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/dowel-mcp/dowel/bench/peer"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

type session struct{ *client.Client }

// Dial implements peer.Peer.
func (Peer) Dial(ctx context.Context, t peer.Target, era peer.Era) (peer.Session, error) {
	c, err := dial(t)
	if err != nil {
		return nil, err
	}
	if t.OnChange != nil {
		c.OnNotification(func(n mcp.JSONRPCNotification) {
			if n.Method == string(mcp.MethodNotificationToolsListChanged) {
				t.OnChange()
			}
		})
	}
	if err := c.Start(context.Background()); err != nil { // its context is the life of the connection
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = string(era)
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, err
	}
	return session{c}, nil
}

func dial(t peer.Target) (*client.Client, error) {
	switch {
	case t.Server != nil:
		return client.NewInProcessClient(t.Server.(mcpServer).MCPServer)
	case t.Stream != nil:
		return client.NewClient(transport.NewIO(t.Stream, t.Stream, io.NopCloser(strings.NewReader("")))), nil
	case t.Command != nil:
		return client.NewStdioMCPClient(t.Command[0], nil, t.Command[1:]...)
	}
	return client.NewStreamableHttpClient(t.URL, transport.WithHTTPBasicClient(t.HTTP))
}

// Call implements peer.Session.
func (s session) Call(ctx context.Context, message string) (string, error) {
	var request mcp.CallToolRequest
	request.Params.Name, request.Params.Arguments = "echo", echo{message}
	result, err := s.CallTool(ctx, request)
	if err != nil {
		return "", err
	}
	if result.IsError || len(result.Content) != 1 {
		return "", errors.New("the tool failed")
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		return "", errors.New("the result is not text")
	}
	return text.Text, nil
}

// List implements peer.Session.
func (s session) List(ctx context.Context) (int, error) {
	result, err := s.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return 0, err
	}
	return len(result.Tools), nil
}
