package mcp

import "encoding/json"

// ClientCapabilities declares the features of a client. A nil member means that the client lacks
// the feature.
type ClientCapabilities struct {
	Roots        *RootsCapability           `json:"roots,omitzero"`
	Sampling     *SamplingCapability        `json:"sampling,omitzero"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitzero"`
	Extensions   map[string]json.RawMessage `json:"extensions,omitempty"`
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
}

// RootsCapability declares roots. ListChanged belongs to the legacy era.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// SamplingCapability declares sampling. Tools and Context are not nil if the client supports
// sampling with tools and with context.
type SamplingCapability struct {
	Tools   *struct{} `json:"tools,omitzero"`
	Context *struct{} `json:"context,omitzero"`
}

// ElicitationCapability declares the modes of elicitation. If both are nil, the client supports
// forms.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitzero"`
	URL  *struct{} `json:"url,omitzero"`
}

// ServerCapabilities declares the features of a server. A nil member means that the server does not
// offer the feature.
type ServerCapabilities struct {
	Tools        *ListCapability            `json:"tools,omitzero"`
	Resources    *ResourcesCapability       `json:"resources,omitzero"`
	Prompts      *ListCapability            `json:"prompts,omitzero"`
	Completions  *struct{}                  `json:"completions,omitzero"`
	Logging      *struct{}                  `json:"logging,omitzero"`
	Extensions   map[string]json.RawMessage `json:"extensions,omitempty"`
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
}

// ListCapability declares a list of tools or prompts.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// ResourcesCapability declares resources.
type ResourcesCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
	Subscribe   bool `json:"subscribe,omitzero"`
}

// Capabilities decodes the capabilities that the client declared. Malformed ones count as not
// declared.
func (r *Request) Capabilities() ClientCapabilities {
	var c ClientCapabilities
	if len(r.ClientCapabilities) > 2 {
		_ = json.Unmarshal(r.ClientCapabilities, &c)
	}
	return c
}
