package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/dowel-mcp/dowel/agent"
)

// reasoning is the form of [agent.Message.Reasoning]: the blocks of a reply that are neither text
// nor calls, mostly thoughts. The signature of a thought is valid for the model that made it.
type reasoning struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Blocks   []returnedBlock `json:"blocks"`
}

const provider = "anthropic"

// returnedBlock is a block that goes back to the API as it came.
type returnedBlock struct {
	Before int             `json:"before"` // the index in the message's content before which it stood
	Block  json.RawMessage `json:"block"`
}

// isThought reports whether the block is a thought, rather than a tool that runs at the provider's.
func (b returnedBlock) isThought() bool {
	var head struct{ Type string }
	return json.Unmarshal(b.Block, &head) == nil && strings.HasSuffix(head.Type, "thinking")
}

func (m *model) encodeReasoning(blocks []returnedBlock) json.RawMessage {
	if len(blocks) == 0 {
		return nil
	}
	return encodeJSON(reasoning{provider, m.opts.Model, blocks})
}

// returnedBlocks returns the blocks of a message's reasoning that go back to the API; none if
// another model made them.
func (m *model) returnedBlocks(data json.RawMessage) []returnedBlock {
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

// forgetThoughts leaves the thoughts in messages out of all later requests. It reports whether the
// messages hold any.
func (m *model) forgetThoughts(messages []agent.Message) (found bool) {
	for _, msg := range messages {
		if len(m.returnedBlocks(msg.Reasoning)) == 0 {
			continue
		}
		m.mu.Lock()
		m.forgotten[string(msg.Reasoning)] = true
		m.mu.Unlock()
		found = true
	}
	return found
}
