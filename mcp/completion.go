package mcp

// CompleteParams asks for completions of an argument (server/utilities/completion).
type CompleteParams struct {
	Meta     Meta               `json:"_meta,omitempty"`
	Ref      CompletionRef      `json:"ref"`
	Argument CompletionArgument `json:"argument"`
	Context  *CompletionContext `json:"context,omitzero"`
}

// CompletionRef names a prompt or a resource template. [PromptRef] and [ResourceRef] make one.
type CompletionRef struct {
	Type string `json:"type"` // ref/prompt or ref/resource
	Name string `json:"name,omitzero"`
	URI  string `json:"uri,omitzero"`
}

// PromptRef refers to a prompt.
func PromptRef(name string) CompletionRef { return CompletionRef{Type: "ref/prompt", Name: name} }

// ResourceRef refers to a resource template.
func ResourceRef(template string) CompletionRef {
	return CompletionRef{Type: "ref/resource", URI: template}
}

// CompletionArgument is an argument and the text typed so far.
type CompletionArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompletionContext holds the arguments that already have values.
type CompletionContext struct {
	Arguments map[string]string `json:"arguments,omitempty"`
}

// CompleteResult holds the suggested values.
type CompleteResult struct {
	Meta       Meta       `json:"_meta,omitempty"`
	Completion Completion `json:"completion"`
}

// Completion holds at most 100 values, best first. Total counts all values, 0 if
// unknown; HasMore reports that values were left out.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitzero"`
	HasMore bool     `json:"hasMore,omitzero"`
}
