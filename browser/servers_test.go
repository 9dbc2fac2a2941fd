//go:build linux

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
	"github.com/dowel-mcp/dowel/transport/stdio"
)

// roles are the servers that the test binary plays.
var roles = map[string]func(){"github": serveGithub, "fails": failToStart, "hostile": serveHostile, "shapes": serveShapes}

// failToStart is a server that lacks its configuration.
func failToStart() {
	fmt.Fprintln(os.Stderr, "jira-mcp 2.1.0\nError: JIRA_API_TOKEN is not set\n    at loadConfig (/usr/lib/node_modules/jira-mcp/index.js:14:11)")
	os.Exit(1)
}

// serveGithub is a server with tools that work, fail and ask.
func serveGithub() {
	fmt.Println("Listening on port 3000")
	fmt.Fprintln(os.Stderr, "github-mcp 4.2.0 ready, 61 repositories")
	s := server.New("github", "4.2.0", nil)
	server.Tool(s, "create_issue", "Creates an issue.", func(_ context.Context, in struct{ Repository, Title, Body string }) (string, error) {
		fmt.Fprintln(os.Stderr, "POST /repos/"+in.Repository+"/issues 201")
		return "https://github.example/" + in.Repository + "/issues/81", nil
	})
	server.Tool(s, "delete_repository", "Deletes a repository.", func(_ context.Context, in struct{ Repository string }) (string, error) {
		return "", errors.New("403: the token may not delete " + in.Repository)
	})
	server.Tool(s, "search_code", "Searches code.", func(_ context.Context, in struct{ Query string }) (string, error) {
		return strings.Repeat("hub/event.go:14: // TODO\n", 40), nil
	})
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}

// hostileText tries to run, to hide and to move text.
const hostileText = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u202egnp.exe\u202c\x1b[31mred\x1b[0m javascript:alert(1) "

// serveHostile is a server with markup, escape sequences and long texts in every field.
func serveHostile() {
	fmt.Println(hostileText)
	fmt.Fprintln(os.Stderr, hostileText)
	s := server.New(hostileText, hostileText, nil)
	server.Tool(s, "evil", hostileText+strings.Repeat("long ", 20_000), func(_ context.Context, in struct{ Text string }) (string, error) {
		return hostileText + strings.Repeat("x", 1<<20) + in.Text, nil
	})
	server.Tool(s, "deep", "Nests.", func(context.Context, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{mcp.Text(hostileText)}, StructuredContent: []byte(`{"a":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`)}, nil
	})
	text, _ := json.Marshal(hostileText) // a string can be encoded
	server.RawTool(s, mcp.Tool{Name: "schema", Title: hostileText, Description: hostileText, InputSchema: hostileSchema(string(text))}, func(_ context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.Text(string(arguments)), mcp.Link(mcp.Resource{URI: "javascript:alert(1)", Name: hostileText}),
			mcp.Image([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='owned'"/>`), "image/svg+xml"),
		}}, nil
	})
	server.Tool(s, "ask", "Asks.", func(ctx context.Context, _ struct{}) (string, error) {
		form := json.RawMessage(strings.ReplaceAll(`{"type":"object","properties":{TEXT:{"type":"string","title":TEXT,"description":TEXT},"__proto__":{"type":"string"},"choice":{"type":"string","enum":[TEXT,"b"]}}}`, "TEXT", string(text)))
		answer, err := server.AskRaw(ctx, "question", mcp.ElicitParams{Message: hostileText + strings.Repeat("x", 1<<20), RequestedSchema: form})
		return fmt.Sprint(answer), err
	})
	if err := stdio.Serve(context.Background(), s); err != nil {
		os.Exit(1)
	}
}

// hostileSchema has a text as each name, title and value, names that are special in JavaScript, and
// recursion.
func hostileSchema(text string) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(`{"type":"object","title":TEXT,"properties":{TEXT:{"type":"string","title":TEXT,"description":TEXT,"examples":[TEXT]},"__proto__":{"type":"string"},
		"constructor":{"enum":[TEXT,"b"]},"a/b~c":{"oneOf":[{"title":TEXT,"type":"string"},{"type":"array","items":{"$ref":"#"}}]},"self":{"$ref":"#"}}}`, "TEXT", text))
}
