package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dowel-mcp/dowel/client"
	"github.com/dowel-mcp/dowel/hub"
	"github.com/dowel-mcp/dowel/internal/control"
	"github.com/dowel-mcp/dowel/mcp"
)

// instructed is the tools of an agent, with what their servers say of themselves: that is asked with each list, since a server may
// come after the agent has been made.
type instructed struct {
	memorizing
	// ask asks for it; nil: the toolbox's client does.
	ask func(ctx context.Context) (string, error)

	said atomic.Pointer[string]
}

// List implements [agent.Tools]. The servers are asked meanwhile: both wait for those that are starting, and one that comes between
// the two answers is a change, with which they are asked again.
func (i *instructed) List(ctx context.Context) ([]mcp.Tool, error) {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() {
		if text, err := i.discover(ctx); err == nil { // else what was said before counts
			i.said.Store(&text)
		}
	})
	return i.memorizing.List(ctx)
}

func (i *instructed) discover(ctx context.Context) (string, error) {
	if i.ask != nil {
		return i.ask(ctx)
	}
	s, err := i.Client().Discover(ctx, client.CallOptions{NoCache: true})
	if err != nil {
		return "", err
	}
	return s.Instructions, nil
}

// instructions are what the servers said with the last list, as the model is told.
func (i *instructed) instructions() string {
	said := i.said.Load()
	if said == nil || strings.TrimSpace(*said) == "" {
		return ""
	}
	return "The servers whose tools you have say this of themselves:\n\n" + strings.TrimSpace(*said)
}

// instructions are those of the dowel that is running as they are now: the gateway in front of it knows those of the beginning.
func (t *through) instructions(ctx context.Context) (string, error) {
	u := t.hub.Upstream(throughName)
	if u == nil {
		return "", control.ErrNotRunning
	}
	res, err := u.RoundTrip(ctx, hub.Caller{}, &mcp.Request{Method: mcp.MethodDiscover})
	if err != nil {
		return "", err
	}
	var d mcp.DiscoverResult
	err = mcp.Decode(res.Raw, &d)
	return d.Instructions, err
}
