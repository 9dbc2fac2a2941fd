package session

import (
	"bytes"
	"encoding/json"

	"github.com/dowel-mcp/dowel/agent"
	"github.com/dowel-mcp/dowel/mcp"
)

// promptRecord is a request to a model, in terms of the conversation before it.
type promptRecord struct {
	System *string         `json:"system,omitzero"` // nil: as in the last prompt of the file
	Tools  json.RawMessage `json:"tools,omitzero"`  // likewise
	// Same is the number of the conversation's messages at the beginning of the request. More are
	// the others.
	Same       int             `json:"same"`
	More       []agent.Message `json:"more,omitzero"`
	ToolChoice string          `json:"toolChoice,omitzero"`
	MaxTokens  int             `json:"maxTokens,omitzero"`
}

// promptMemory is what a session remembers of the requests that it has stored.
type promptMemory struct {
	system *string // of the last one; nil without one
	tools  []byte
	// stepSystem is the System of the last request that continued the conversation.
	stepSystem string
	// isCompacted: the conversation was replaced since then.
	isCompacted bool
}

// Prompt stores a request to a model, so that a trace has exactly what the model got. If the
// request continues the conversation, the conversation is stored as the request has it. Before the
// first message Prompt does nothing.
func (s *Session) Prompt(c agent.Conversation) error {
	if s.size == 0 || s.failed != nil {
		return s.failed
	}
	same := s.countSame(c.Messages)
	continues := same >= len(s.conversation)-1 && len(c.Messages) >= len(s.conversation)
	if continues || s.prompted.isCompacted && c.System == s.prompted.stepSystem {
		s.prompted.stepSystem, s.prompted.isCompacted = c.System, false
		if err := s.Sync(c.Messages); err != nil {
			return err
		}
		same = len(c.Messages)
	}
	p := promptRecord{Same: same, More: c.Messages[same:], ToolChoice: c.ToolChoice, MaxTokens: c.MaxTokens}
	tools, err := encodeTools(c.Tools)
	if err != nil {
		return err
	}
	if s.prompted.system == nil || *s.prompted.system != c.System {
		p.System = &c.System
	}
	if s.prompted.system == nil || !bytes.Equal(s.prompted.tools, tools) {
		p.Tools = tools
	}
	s.prompted.system, s.prompted.tools = &c.System, tools
	return s.writeRecord(&record{Prompt: &p})
}

// encodeTools returns the JSON of tools, with [] for none.
func encodeTools(tools []mcp.Tool) ([]byte, error) {
	if len(tools) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal(tools)
}

// Compacted stores that the older part of the conversation was replaced, and the tokens of the next
// request before and after.
func (s *Session) Compacted(before, after int) error {
	s.prompted.isCompacted = true
	return s.Note(eventCompacted, compactedNote{before, after})
}

// countSame returns the number of first messages that the conversation and other messages share.
func (s *Session) countSame(all []agent.Message) int {
	n := 0
	for n < len(all) && n < len(s.conversation) && sameMessage(&s.conversation[n], &all[n]) {
		n++
	}
	return n
}
