package exit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/mcpwire"
	"github.com/dowel-mcp/dowel/mcp"
)

func TestExitCode(t *testing.T) {
	call := func(err error) error { return &client.CallError{Server: "s", Method: "m", Err: err} }
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{call(ErrReaderGone), 0},
		{ToolError{"t", "no"}, 1},
		{errors.New("disk full"), 1},
		{Usagef("no"), 2},
		{call(fmt.Errorf("asking: %w", Usagef("no"))), 2},
		{ConnectError{Server: "s", Err: errors.New("no")}, 3},
		{ConnectError{Server: "s", Err: mcp.Errorf(-32602, "no")}, 3},
		{call(fmt.Errorf("%w: gone", mcp.ErrConnection)), 3},
		{call(mcp.Errorf(-32602, "no")), 4},
		{call(errors.New("the result cannot be read")), 4},
		{call(&client.OutputError{Tool: "t", Err: errors.New("no")}), 4},
		{call(&client.TimeoutError{Kind: client.TimeoutTotal, After: time.Second}), 124},
		{ConnectError{Server: "s", Err: &client.TimeoutError{Kind: client.TimeoutConnect}}, 124},
		{call(&Interruption{os.Interrupt}), 130},
		{ConnectError{Server: "s", Err: &Interruption{syscall.SIGTERM}}, 143},
	} {
		if got := Code(test.err); got != test.want {
			t.Errorf("%v: got %d, want %d", test.err, got, test.want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for want, err := range map[string]error{
		"--timeout":                      &client.TimeoutError{Kind: client.TimeoutTotal},
		"--idle-timeout":                 &client.TimeoutError{Kind: client.TimeoutIdle},
		"--connect-timeout":              &client.TimeoutError{Kind: client.TimeoutConnect},
		"--answer":                       mcpwire.MissingCapability(&mcp.CapabilityError{Required: mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}}}),
		"--sample-text":                  mcpwire.MissingCapability(&mcp.CapabilityError{Required: mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{}}}),
		"--root":                         mcpwire.MissingCapability(&mcp.CapabilityError{Required: mcp.ClientCapabilities{Roots: &mcp.RootsCapability{}}}),
		"dowel doctor s finds the cause": ConnectError{Server: "s", Err: errors.New("no"), Doctor: "dowel doctor s"},
	} {
		if got := Advice(err); !strings.Contains(got, want) {
			t.Errorf("%v: got %q, want %s in it", err, got, want)
		}
	}
	if got := Advice(ConnectError{Server: "s", Err: &Interruption{os.Interrupt}, Doctor: "dowel doctor s"}); got != "" {
		t.Errorf("an interruption has the advice %q", got)
	}
}
