package mcp

import "encoding/json"

// Tool is a function that a model can call (server/tools).
type Tool struct {
	Name         string           `json:"name"`
	Title        string           `json:"title,omitzero"`
	Description  string           `json:"description,omitzero"`
	Icons        []Icon           `json:"icons,omitempty"`
	InputSchema  json.RawMessage  `json:"inputSchema"`
	OutputSchema json.RawMessage  `json:"outputSchema,omitzero"`
	Annotations  *ToolAnnotations `json:"annotations,omitzero"`
	Meta         Meta             `json:"_meta,omitempty"`
}

// ToolAnnotations are hints about a tool's behaviour. They are untrusted unless the server is
// trusted. A nil hint means the protocol's default: not read-only, destructive, not idempotent,
// open world.
type ToolAnnotations struct {
	Title           string `json:"title,omitzero"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitzero"`
	DestructiveHint *bool  `json:"destructiveHint,omitzero"`
	IdempotentHint  *bool  `json:"idempotentHint,omitzero"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitzero"`
}

// ReadOnly marks a tool that changes nothing. It is shared: copy it before changing it.
var ReadOnly = &ToolAnnotations{ReadOnlyHint: new(true)}

// ListToolsResult is a page of tools.
type ListToolsResult struct {
	Meta  Meta   `json:"_meta,omitempty"`
	Tools []Tool `json:"tools"`
	Page
}

// CallToolParams calls a tool.
type CallToolParams struct {
	Meta      Meta            `json:"_meta,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // an object
	InputResponseParams
}

// CallToolResult is the result of a tool. If IsError is set, Content tells a model what went wrong.
type CallToolResult struct {
	Meta              Meta            `json:"_meta,omitempty"`
	Content           []Content       `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	IsError           bool            `json:"isError,omitzero"`
}
