package mcp

import "encoding/json"

// CreateMessageParams asks the client's model for a message (client/sampling).
type CreateMessageParams struct {
	Meta             Meta              `json:"_meta,omitempty"` // up to 2025-11-25; later schemas do not name it
	Messages         []SamplingMessage `json:"messages"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	SystemPrompt     string            `json:"systemPrompt,omitzero"`
	IncludeContext   string            `json:"includeContext,omitzero"` // none, or the deprecated thisServer and allServers
	Temperature      *float64          `json:"temperature,omitzero"`
	MaxTokens        int               `json:"maxTokens"`
	StopSequences    []string          `json:"stopSequences,omitempty"`
	Metadata         json.RawMessage   `json:"metadata,omitzero"`
	Tools            []Tool            `json:"tools,omitempty"`
	ToolChoice       *ToolChoice       `json:"toolChoice,omitzero"`
}

// ToolChoice says whether the model may (auto), must (required) or must not (none) use tools.
type ToolChoice struct {
	Mode string `json:"mode,omitzero"`
}

// SamplingMessage is a message to or from a model.
type SamplingMessage struct {
	Role    Role            `json:"role"`
	Content SamplingContent `json:"content"`
	Meta    Meta            `json:"_meta,omitempty"`
}

// SamplingContent is one block or several. One block is encoded as an object, which every revision
// understands.
type SamplingContent []Content

// CreateMessageResult is the model's message.
type CreateMessageResult struct {
	Meta       Meta            `json:"_meta,omitempty"`
	Role       Role            `json:"role"`
	Content    SamplingContent `json:"content"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitzero"` // endTurn, stopSequence, maxTokens, toolUse or a provider's own
}

// Text returns the text of all text blocks.
func (r *CreateMessageResult) Text() string {
	text := ""
	for _, c := range r.Content {
		text += c.Text
	}
	return text
}

// ModelPreferences guide the choice of a model. Each priority is between 0 and 1.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitempty"`
	CostPriority         *float64    `json:"costPriority,omitzero"`
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// ModelHint is a part of a model's name.
type ModelHint struct {
	Name string `json:"name,omitzero"`
}
