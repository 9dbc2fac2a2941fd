package agentcmd

import (
	"context"
	"iter"

	"github.com/dowel-mcp/dowel/agent"
)

// observedModel is a model that reports each request.
type observedModel struct {
	agent.Model
	onRequest func(agent.Conversation)
}

// observeModel returns a model that calls onRequest, unless that or the model is nil.
func observeModel(m agent.Model, onRequest func(agent.Conversation)) agent.Model {
	if m == nil || onRequest == nil {
		return m
	}
	return observedModel{m, onRequest}
}

// Reply implements [agent.Model].
func (m observedModel) Reply(ctx context.Context, c agent.Conversation) iter.Seq2[agent.Delta, error] {
	m.onRequest(c)
	return m.Model.Reply(ctx, c)
}

// Name returns the name of the model, or "".
func (m observedModel) Name() string {
	if named, ok := m.Model.(interface{ Name() string }); ok {
		return named.Name()
	}
	return ""
}

// MaxTools returns the limit of the model's tools; 0: no limit.
func (m observedModel) MaxTools() int {
	if limited, ok := m.Model.(interface{ MaxTools() int }); ok {
		return limited.MaxTools()
	}
	return 0
}
