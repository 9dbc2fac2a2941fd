package mcp

import (
	"cmp"
	"encoding/json"
	"maps"
)

// ClientCapabilities declares the features of a client. A nil member means that the client lacks
// the feature.
type ClientCapabilities struct {
	Roots        *RootsCapability       `json:"roots,omitzero"`
	Sampling     *SamplingCapability    `json:"sampling,omitzero"`
	Elicitation  *ElicitationCapability `json:"elicitation,omitzero"`
	Extensions   map[string]Object      `json:"extensions,omitempty"`
	Experimental map[string]Object      `json:"experimental,omitempty"`
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
	Tools        *ListCapability      `json:"tools,omitzero"`
	Resources    *ResourcesCapability `json:"resources,omitzero"`
	Prompts      *ListCapability      `json:"prompts,omitzero"`
	Completions  *struct{}            `json:"completions,omitzero"`
	Logging      *struct{}            `json:"logging,omitzero"`
	Extensions   map[string]Object    `json:"extensions,omitempty"`
	Experimental map[string]Object    `json:"experimental,omitempty"`
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

// And returns the union of both capabilities.
func (c ClientCapabilities) And(other ClientCapabilities) ClientCapabilities {
	if c.Roots == nil {
		c.Roots = other.Roots
	}
	c.Sampling = c.Sampling.merge(other.Sampling)
	c.Elicitation = c.Elicitation.merge(other.Elicitation)
	c.Extensions = mergeObjects(c.Extensions, other.Extensions)
	c.Experimental = mergeObjects(c.Experimental, other.Experimental)
	return c
}

func (c *SamplingCapability) merge(other *SamplingCapability) *SamplingCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	return &SamplingCapability{Tools: cmp.Or(c.Tools, other.Tools), Context: cmp.Or(c.Context, other.Context)}
}

// merge makes explicit that neither mode means form.
func (c *ElicitationCapability) merge(other *ElicitationCapability) *ElicitationCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	both := &ElicitationCapability{Form: cmp.Or(c.Form, other.Form), URL: cmp.Or(c.URL, other.URL)}
	if both.URL != nil && (c.URL == nil || other.URL == nil) {
		both.Form = &struct{}{}
	}
	return both
}

func mergeObjects(a, b map[string]Object) map[string]Object {
	if len(a) == 0 {
		return b
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// Missing returns the part of want that is not in have. any reports whether it is not empty.
func Missing(have, want ClientCapabilities) (missing ClientCapabilities, any bool) {
	if want.Roots != nil && have.Roots == nil {
		missing.Roots, any = want.Roots, true
	}
	if missing.Sampling = have.Sampling.missingFrom(want.Sampling); missing.Sampling != nil {
		any = true
	}
	if missing.Elicitation = have.Elicitation.missingFrom(want.Elicitation); missing.Elicitation != nil {
		any = true
	}
	for id, settings := range want.Extensions {
		if _, ok := have.Extensions[id]; !ok {
			if missing.Extensions == nil {
				missing.Extensions = map[string]Object{}
			}
			missing.Extensions[id], any = settings, true
		}
	}
	return missing, any
}

// missingFrom returns the part of want that c lacks, or nil.
func (c *SamplingCapability) missingFrom(want *SamplingCapability) *SamplingCapability {
	if c == nil || want == nil {
		return want
	}
	var missing SamplingCapability
	if c.Tools == nil {
		missing.Tools = want.Tools
	}
	if c.Context == nil {
		missing.Context = want.Context
	}
	if missing == (SamplingCapability{}) {
		return nil
	}
	return &missing
}

// missingFrom returns the part of want that c lacks, or nil.
func (c *ElicitationCapability) missingFrom(want *ElicitationCapability) *ElicitationCapability {
	if c == nil || want == nil {
		return want
	}
	var missing ElicitationCapability
	if c.URL != nil && c.Form == nil { // such a client does not support forms
		missing.Form = want.Form
		if want.URL == nil {
			return want
		}
	}
	if c.URL == nil {
		missing.URL = want.URL
	}
	if missing == (ElicitationCapability{}) {
		return nil
	}
	return &missing
}
