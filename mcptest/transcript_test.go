package mcptest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/mcptest"
)

// A transcript is played to two handlers: over a wire, and on the goroutine of a client in the same
// process.
func TestTranscriptIsPlayedBothWays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "call.txt")
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	script := `> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",` + meta + `}}
< {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
`
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	var onClient []bool // for each handler
	mcptest.Transcript(t, file, func() mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (*mcp.Result, error) {
			onClient = append(onClient, strings.Contains(string(debug.Stack()), "deliverFrame"))
			return &mcp.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		})
	})
	if !slices.Equal(onClient, []bool{false, true}) {
		t.Errorf("the handlers ran on the client's goroutine: %v", onClient)
	}
}
