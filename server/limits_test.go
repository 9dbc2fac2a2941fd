package server_test

import (
	"context"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

func TestLimit(t *testing.T) {
	s := newServer(server.Options{Limit: server.Limit{PerSecond: 1e-6}})
	server.Tool(s, "t", "", none)
	server.Prompt(s, "p", "", func(context.Context, struct {
		A string `json:"a" enum:"x"`
	}) (string, error) {
		return "", nil
	})
	complete := `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`
	tool := func(principal string) string {
		return serve(t, s, as(principal, request(mcp.MethodCallTool, `{"name":"t"}`)))
	}
	want(t, tool("ann"), `{"content":[]}`)
	wantPart(t, tool("ann"), `{"content":[{"type":"text","text":"rate limit exceeded: try again in `)
	wantPart(t, tool("ann"), `"isError":true`)
	wantPart(t, serve(t, s, as("ann", request(mcp.MethodComplete, complete))), "error -32603: rate limit exceeded: try again in ")
	want(t, serve(t, s, as("bob", request(mcp.MethodComplete, complete))), `{"completion":{"values":["x"],"total":1}}`)
	want(t, serve(t, s, as("ann", request(mcp.MethodListTools, `{}`)))[:9], `{"tools":`)
}
