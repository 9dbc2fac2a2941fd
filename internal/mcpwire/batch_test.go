package mcpwire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/internal/rawjson"
	"github.com/dowel-mcp/dowel/jsonrpc"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestBatch(t *testing.T) {
	for _, tt := range []struct {
		frame, want string
		code        int
	}{
		{`[{"a":1},{"b":2}]`, `{"a":1}|{"b":2}`, 0}, {" [ 1 ,\n\"x\" , [2] ] ", `1|"x"|[2]`, 0}, {`[null]`, `null`, 0},
		{`[]`, ``, jsonrpc.CodeInvalidRequest}, {` [ ] `, ``, jsonrpc.CodeInvalidRequest}, {`[1,]`, ``, jsonrpc.CodeParse}, {`[1`, ``, jsonrpc.CodeParse}, {`[1][2]`, ``, jsonrpc.CodeParse}, {"[\"\xff\"]", ``, jsonrpc.CodeParse},
		{`[` + strings.Repeat(`[`, rawjson.MaxDepth) + strings.Repeat(`]`, rawjson.MaxDepth) + `]`, ``, jsonrpc.CodeParse},
	} {
		messages, err := mcpwire.SplitBatch([]byte(tt.frame), 1000)
		got := make([]string, len(messages))
		for i, m := range messages {
			got[i] = string(m)
		}
		if tt.code != 0 {
			var e *mcp.Error
			if !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("SplitBatch(%s) = %v, want %d", tt.frame, err, tt.code)
			}
		} else if err != nil || strings.Join(got, "|") != tt.want {
			t.Errorf("SplitBatch(%s) = %q, %v", tt.frame, got, err)
		}
	}
	for frame, want := range map[string]bool{`[]`: true, " \n\t\r[": true, `{}`: false, `1`: false, ``: false, ` `: false, `"["`: false} {
		if mcpwire.IsBatch([]byte(frame)) != want {
			t.Errorf("IsBatch(%q) = %v", frame, !want)
		}
	}
}
