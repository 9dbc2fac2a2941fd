package agentcmd

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/internal/cli/toolname"
	"github.com/dowel-mcp/dowel/mcp"
)

// instructedTools is the tools of an agent, with what their servers say of themselves: that is asked with each list, since a server may
// come after the agent has been made.
type instructedTools struct {
	toolname.Recorder
	// fetch asks for it; nil: the toolbox's client does.
	fetch func(ctx context.Context) (string, error)

	latest atomic.Pointer[string]
}

// List implements [agent.Tools]. The servers are asked meanwhile: both wait for those that are starting, and one that comes between
// the two answers is a change, with which they are asked again.
func (i *instructedTools) List(ctx context.Context) ([]mcp.Tool, error) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if text, err := i.readInstructions(ctx); err == nil { // else what was said before counts
			i.latest.Store(&text)
		}
	})
	return i.Recorder.List(ctx)
}

func (i *instructedTools) readInstructions(ctx context.Context) (string, error) {
	if i.fetch != nil {
		return i.fetch(ctx)
	}
	s, err := i.Client().Discover(ctx, client.CallOptions{NoCache: true})
	if err != nil {
		return "", err
	}
	return s.Instructions, nil
}

// formatInstructions are what the servers said with the last list, as the model is told.
func (i *instructedTools) formatInstructions() string {
	said := i.latest.Load()
	if said == nil || strings.TrimSpace(*said) == "" {
		return ""
	}
	return "The servers whose tools you have say this of themselves:\n\n" + strings.TrimSpace(*said)
}
