package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	mcpgoschema "github.com/mark3labs/mcp-go/mcp"
	gosdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// caller calls a tool with another SDK's client and returns the texts of the result.
type caller func(tool string, arguments map[string]any) (string, error)

// newCallers returns the clients of other SDKs in both eras by name, each with its own process of
// the server.
func newCallers(t *testing.T, command ...string) map[string]caller {
	return map[string]caller{
		"go-sdk, modern": gosdkCaller(t, modernRevision, command), "go-sdk, legacy": gosdkCaller(t, "2025-11-25", command),
		"mcp-go, modern": mcpgoCaller(t, modernRevision, command), "mcp-go, legacy": mcpgoCaller(t, "2025-11-25", command),
	}
}

func gosdkCaller(t *testing.T, revision string, command []string) caller {
	c := gosdk.NewClient(&gosdk.Implementation{Name: "go-sdk", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &gosdk.CommandTransport{Command: exec.Command(command[0], command[1:]...)}, &gosdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return func(tool string, arguments map[string]any) (string, error) {
		res, err := s.CallTool(t.Context(), &gosdk.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			return "", err
		}
		var texts []string
		for _, block := range res.Content {
			if text, ok := block.(*gosdk.TextContent); ok {
				texts = append(texts, text.Text)
			}
		}
		return joinTexts(texts, res.IsError)
	}
}

func mcpgoCaller(t *testing.T, revision string, command []string) caller {
	c, err := mcpgo.NewStdioMCPClient(command[0], nil, command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	hello := mcpgoschema.InitializeRequest{}
	hello.Params.ClientInfo = mcpgoschema.Implementation{Name: "mcp-go", Version: "1"}
	hello.Params.ProtocolVersion = revision
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	return func(tool string, arguments map[string]any) (string, error) {
		req := mcpgoschema.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = tool, arguments
		res, err := c.CallTool(context.WithoutCancel(t.Context()), req)
		if err != nil {
			return "", err
		}
		var texts []string
		for _, block := range res.Content {
			if text, ok := block.(mcpgoschema.TextContent); ok {
				texts = append(texts, text.Text)
			}
		}
		return joinTexts(texts, res.IsError)
	}
}

func joinTexts(texts []string, failed bool) (string, error) {
	all := strings.Join(texts, "\n")
	if failed {
		return all, fmt.Errorf("the tool has failed: %s", all)
	}
	return all, nil
}

// The shell keeps its folder and variables between the calls of any client that passes its handle.
func TestShellForOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, call := range newCallers(t, binaryPath(t, "dowel"), "serve", "shell", "dir="+dir) {
		t.Run(name, func(t *testing.T) {
			text, err := call("run", map[string]any{"command": "mkdir -p in && cd in && KEPT=well && echo begun"})
			handle := ""
			if _, behind, ok := strings.Cut(text, "[shell "); ok {
				handle, _, _ = strings.Cut(behind, " ")
			}
			if err != nil || !strings.Contains(text, "begun") || handle == "" {
				t.Fatalf("%s, %v", text, err)
			}
			text, err = call("run", map[string]any{"command": "echo $KEPT in $(basename $PWD)", "shell": strings.TrimRight(handle, ":")})
			if err != nil || !strings.Contains(text, "well in in") {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}

// Any client can write, read and find files, but none outside the roots.
func TestFilesForOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(filepath.Dir(dir), "outside.txt")
	if err := os.WriteFile(outside, []byte("hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, call := range newCallers(t, binaryPath(t, "dowel"), "serve", "files", "roots="+dir) {
		t.Run(name, func(t *testing.T) {
			file := strings.NewReplacer(" ", "", ",", "").Replace(name) + ".txt"
			if text, err := call("write", map[string]any{"path": file, "content": "a needle\n"}); err != nil {
				t.Fatalf("%s, %v", text, err)
			}
			if text, err := call("read", map[string]any{"path": file}); err != nil || !strings.Contains(text, "a needle") {
				t.Errorf("%s, %v", text, err)
			}
			if text, err := call("search", map[string]any{"query": "needle"}); err != nil || !strings.Contains(text, file) {
				t.Errorf("%s, %v", text, err)
			}
			if text, err := call("read", map[string]any{"path": outside}); err == nil || strings.Contains(text, "hidden") {
				t.Errorf("a file outside the roots was read: %s, %v", text, err)
			}
		})
	}
}
