//go:build unix

package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/builtin/files"
	"github.com/dowel-mcp/dowel/internal/builtin/shell"
	"github.com/dowel-mcp/dowel/mcp"
)

// What dowel's own servers return is given once.
func TestOwnServersOnce(t *testing.T) {
	dir := t.TempDir()
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, "line %d of \"some\" text\n", i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%d.txt", i)), []byte(strings.Repeat("x", i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "text.txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := files.New(files.Options{Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sh, err := shell.New(shell.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer sh.Close()
	for _, tt := range []struct {
		server any
		call   string
	}{
		{f, `read {"path":"text.txt"}`},
		{f, `read {"path":"text.txt","limit":100}`},
		{f, `list {}`},
		{f, `list {"path":"","limit":20}`},
		{f, `search {"query":"line 4","context":1}`},
		{f, `search {"glob":"*.txt","limit":30}`},
		{f, `edit {"path":"text.txt","edits":[{"old":"line 7 ","new":"a line 7 "}]}`},
		{sh, `run {"command":"cat text.txt"}`},
		{sh, `run {"command":"echo hi"}`},
		{sh, `run {"command":"echo hi; exit 3"}`},
	} {
		t.Run(tt.call, func(t *testing.T) {
			box, err := agent.Dial(t.Context(), tt.server, client.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			a := newTrustingAgent(&script{t: t, replies: []reply{says("", tt.call), says("done")}}, box, &agent.Options{Mode: agent.ModeAll, Limits: agent.Limits{MaxResult: -1}})
			if _, err := trace(a.Run(t.Context(), mcp.Text("go"))); err != nil {
				t.Fatal(err)
			}
			res := a.Messages()[2].Content[0].ToolResult
			if res.IsError {
				t.Fatal(res.Content[0].Text)
			}
			for _, block := range res.Content {
				if strings.HasPrefix(block.Text, `{"`) {
					t.Errorf("structured, too: %.300s", block.Text)
				}
			}
		})
	}
}
