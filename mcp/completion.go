package mcp

// MaxCompletions is how many values a completion may hold.
const MaxCompletions = 100

// CompleteParams asks how an argument can be completed (server/utilities/completion).
type CompleteParams struct {
	Meta     Meta               `json:"_meta,omitempty"`
	Ref      CompletionRef      `json:"ref"`
	Argument CompletionArgument `json:"argument"`
	Context  *CompletionContext `json:"context,omitzero"`
}

// CompletionRef names a prompt or a resource template. Make one with [PromptRef] or [ResourceRef].
type CompletionRef struct {
	Type string `json:"type"`
	Name string `json:"name,omitzero"`
	URI  string `json:"uri,omitzero"`
}

// Types of a [CompletionRef].
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// PromptRef refers to a prompt.
func PromptRef(name string) CompletionRef { return CompletionRef{Type: RefPrompt, Name: name} }

// ResourceRef refers to a resource template.
func ResourceRef(template string) CompletionRef {
	return CompletionRef{Type: RefResource, URI: template}
}

// CompletionArgument is the argument with what has been typed so far.
type CompletionArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompletionContext holds the arguments that are settled already.
type CompletionContext struct {
	Arguments map[string]string `json:"arguments,omitempty"`
}

// CompleteResult holds suggestions.
type CompleteResult struct {
	Meta       Meta       `json:"_meta,omitempty"`
	Completion Completion `json:"completion"`
}

// Completion is at most [MaxCompletions] values, best first.
type Completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total,omitzero"`
	HasMore bool     `json:"hasMore,omitzero"`
}
