package mcp

import (
	"cmp"
	"encoding/json"
	"maps"
)

// ClientCapabilities is what a client supports. A nil member is not supported.
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

// SamplingCapability declares sampling, with tools and with context where those are not nil.
type SamplingCapability struct {
	Tools   *struct{} `json:"tools,omitzero"`
	Context *struct{} `json:"context,omitzero"`
}

// ElicitationCapability declares elicitation modes; neither means form.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitzero"`
	URL  *struct{} `json:"url,omitzero"`
}

// ServerCapabilities is what a server offers. A nil member is not offered.
type ServerCapabilities struct {
	Tools        *ListCapability      `json:"tools,omitzero"`
	Resources    *ResourcesCapability `json:"resources,omitzero"`
	Prompts      *ListCapability      `json:"prompts,omitzero"`
	Completions  *struct{}            `json:"completions,omitzero"`
	Logging      *struct{}            `json:"logging,omitzero"`
	Extensions   map[string]Object    `json:"extensions,omitempty"`
	Experimental map[string]Object    `json:"experimental,omitempty"`
}

// ListCapability declares a kind of thing that can be listed.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// ResourcesCapability declares resources.
type ResourcesCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
	Subscribe   bool `json:"subscribe,omitzero"`
}

// Capabilities decodes what the client declared. What cannot be decoded counts as not declared.
func (r *Request) Capabilities() ClientCapabilities {
	var c ClientCapabilities
	if len(r.ClientCapabilities) > 2 {
		_ = json.Unmarshal(r.ClientCapabilities, &c)
	}
	return c
}

// And returns the capabilities of both.
func (c ClientCapabilities) And(other ClientCapabilities) ClientCapabilities {
	if c.Roots == nil {
		c.Roots = other.Roots
	}
	c.Sampling = c.Sampling.and(other.Sampling)
	c.Elicitation = c.Elicitation.and(other.Elicitation)
	c.Extensions = union(c.Extensions, other.Extensions)
	c.Experimental = union(c.Experimental, other.Experimental)
	return c
}

func (c *SamplingCapability) and(other *SamplingCapability) *SamplingCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	return &SamplingCapability{Tools: cmp.Or(c.Tools, other.Tools), Context: cmp.Or(c.Context, other.Context)}
}

// and makes explicit that neither mode means form.
func (c *ElicitationCapability) and(other *ElicitationCapability) *ElicitationCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	both := &ElicitationCapability{Form: cmp.Or(c.Form, other.Form), URL: cmp.Or(c.URL, other.URL)}
	if both.URL != nil && (c.URL == nil || other.URL == nil) {
		both.Form = &struct{}{}
	}
	return both
}

func union(a, b map[string]Object) map[string]Object {
	if len(a) == 0 {
		return b
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// Missing returns the part of want that have lacks, and whether there is any.
func Missing(have, want ClientCapabilities) (missing ClientCapabilities, any bool) {
	if want.Roots != nil && have.Roots == nil {
		missing.Roots, any = want.Roots, true
	}
	if missing.Sampling = have.Sampling.lacks(want.Sampling); missing.Sampling != nil {
		any = true
	}
	if missing.Elicitation = have.Elicitation.lacks(want.Elicitation); missing.Elicitation != nil {
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

// lacks returns what of want is missing, nil if nothing is.
func (c *SamplingCapability) lacks(want *SamplingCapability) *SamplingCapability {
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

// lacks returns what of want is missing, nil if nothing is.
func (c *ElicitationCapability) lacks(want *ElicitationCapability) *ElicitationCapability {
	if c == nil || want == nil {
		return want
	}
	var missing ElicitationCapability
	if c.URL != nil && c.Form == nil { // then form is not supported
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
