package anthropic

import (
	"encoding/json"

	"github.com/dowel-mcp/dowel/agent"
)

// reasoning is the form of [agent.Message.Reasoning]: what a model has thought, and whatever else stood in its reply that is neither
// text nor a call. Signatures hold for the model that has made them.
type reasoning struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Blocks   []kept `json:"blocks"`
}

const provider = "anthropic"

func (m *Model) reasoning(blocks []kept) json.RawMessage {
	if len(blocks) == 0 {
		return nil
	}
	data, err := json.Marshal(reasoning{provider, m.opts.Model, blocks})
	if err != nil {
		panic(err) // blocks are JSON that has been read
	}
	return data
}

// thoughts are what is sent back of a message's reasoning: nothing of another model's.
func (m *Model) thoughts(data json.RawMessage) []kept {
	var r reasoning
	if len(data) == 0 || json.Unmarshal(data, &r) != nil || r.Provider != provider || r.Model != m.opts.Model {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.forgotten[string(data)] {
		return nil
	}
	return r.Blocks
}

// forget leaves all that has been thought so far out of what is sent from now on. It returns whether there was anything.
func (m *Model) forget(messages []agent.Message) (any bool) {
	for _, msg := range messages {
		if len(m.thoughts(msg.Reasoning)) == 0 {
			continue
		}
		m.mu.Lock()
		m.forgotten[string(msg.Reasoning)] = true
		m.mu.Unlock()
		any = true
	}
	return any
}
