package agentcmd

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
)

// instructedTools lists an agent's tools together with the servers' instructions. It fetches the
// instructions with every list, because a server may become ready after the agent was made.
type instructedTools struct {
	toolname.Recorder
	// fetch returns the instructions. If it is nil, the toolbox's client fetches them.
	fetch func(ctx context.Context) (string, error)
	*toolSwitch
	edits *editRecorder
	marks *callMarks // nil if calls get no marks

	latest atomic.Pointer[string]
}

// List implements [agent.Tools]. It leaves out tools that the user has switched off. It fetches the
// instructions concurrently. If a server becomes ready between the two answers, its tools change
// and the agent lists again.
func (t *instructedTools) List(ctx context.Context) ([]mcp.Tool, error) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if text, err := t.readInstructions(ctx); err == nil { // after an error, the earlier text remains
			t.latest.Store(&text)
		}
	})
	tools, err := t.Recorder.List(ctx)
	return slices.DeleteFunc(tools, func(tool mcp.Tool) bool { return t.isOff(tool.Name) }), err
}

// Changed implements [agent.Tools].
func (t *instructedTools) Changed() <-chan struct{} {
	if switched := t.pending(); switched != nil {
		return switched
	}
	return t.Recorder.Changed()
}

// Call implements [agent.Tools]. It marks the call, and notes the change that a call of the files
// server makes.
func (t *instructedTools) Call(ctx context.Context, use mcp.ToolUse, progress func(mcp.ProgressParams)) (*mcp.CallToolResult, error) {
	noteEdit := t.edits.watchCall(use)
	if t.marks != nil {
		ctx = t.marks.markCall(ctx)
	}
	result, err := t.Recorder.Call(ctx, use, progress)
	if err == nil {
		noteEdit(result)
	}
	return result, err
}

func (t *instructedTools) readInstructions(ctx context.Context) (string, error) {
	if t.fetch != nil {
		return t.fetch(ctx)
	}
	s, err := t.Client().Discover(ctx, client.CallOptions{NoCache: true})
	if err != nil {
		return "", err
	}
	return s.Instructions, nil
}

// formatInstructions returns the instructions of the last list for the system prompt, or "".
func (t *instructedTools) formatInstructions() string {
	text := t.latest.Load()
	if text == nil || strings.TrimSpace(*text) == "" {
		return ""
	}
	return "The servers whose tools you have say this of themselves:\n\n" + strings.TrimSpace(*text)
}
