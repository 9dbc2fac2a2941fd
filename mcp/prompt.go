package mcp

// Prompt is a template for messages to a model (server/prompts).
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitzero"`
	Description string           `json:"description,omitzero"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`
	Icons       []Icon           `json:"icons,omitempty"`
	Meta        Meta             `json:"_meta,omitempty"`
}

// PromptArgument describes one argument of a prompt.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"`
	Description string `json:"description,omitzero"`
	Required    bool   `json:"required,omitzero"`
}

// ListPromptsResult is a page of prompts.
type ListPromptsResult struct {
	Meta    Meta     `json:"_meta,omitempty"`
	Prompts []Prompt `json:"prompts"`
	Page
}

// GetPromptParams asks for a prompt with its arguments filled in.
type GetPromptParams struct {
	Meta      Meta              `json:"_meta,omitempty"`
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitempty"`
	InputResponseParams
}

// GetPromptResult holds a prompt's messages.
type GetPromptResult struct {
	Meta        Meta            `json:"_meta,omitempty"`
	Description string          `json:"description,omitzero"`
	Messages    []PromptMessage `json:"messages"`
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    Role    `json:"role"`
	Content Content `json:"content"`
}
