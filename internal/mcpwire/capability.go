package mcpwire

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/dowel-mcp/dowel/mcp"
)

// MergeCapabilities returns the union of both capabilities.
func MergeCapabilities(c, other mcp.ClientCapabilities) mcp.ClientCapabilities {
	if c.Roots == nil {
		c.Roots = other.Roots
	}
	c.Sampling = mergeSampling(c.Sampling, other.Sampling)
	c.Elicitation = mergeElicitation(c.Elicitation, other.Elicitation)
	c.Extensions = mergeObjects(c.Extensions, other.Extensions)
	c.Experimental = mergeObjects(c.Experimental, other.Experimental)
	return c
}

func mergeSampling(c, other *mcp.SamplingCapability) *mcp.SamplingCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	return &mcp.SamplingCapability{Tools: cmp.Or(c.Tools, other.Tools), Context: cmp.Or(c.Context, other.Context)}
}

// mergeElicitation makes explicit that neither mode means form.
func mergeElicitation(c, other *mcp.ElicitationCapability) *mcp.ElicitationCapability {
	if c == nil || other == nil {
		return cmp.Or(c, other)
	}
	both := &mcp.ElicitationCapability{Form: cmp.Or(c.Form, other.Form), URL: cmp.Or(c.URL, other.URL)}
	if both.URL != nil && (c.URL == nil || other.URL == nil) {
		both.Form = &struct{}{}
	}
	return both
}

func mergeObjects(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	if len(a) == 0 {
		return b
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

// MissingCapabilities returns the part of want that is not in have. any reports whether it is not
// empty.
func MissingCapabilities(have, want mcp.ClientCapabilities) (missing mcp.ClientCapabilities, any bool) {
	if want.Roots != nil && have.Roots == nil {
		missing.Roots, any = want.Roots, true
	}
	if missing.Sampling = missingSampling(have.Sampling, want.Sampling); missing.Sampling != nil {
		any = true
	}
	if missing.Elicitation = missingElicitation(have.Elicitation, want.Elicitation); missing.Elicitation != nil {
		any = true
	}
	for id, settings := range want.Extensions {
		if _, ok := have.Extensions[id]; !ok {
			if missing.Extensions == nil {
				missing.Extensions = map[string]json.RawMessage{}
			}
			missing.Extensions[id], any = settings, true
		}
	}
	return missing, any
}

// missingSampling returns the part of want that c lacks, or nil.
func missingSampling(c, want *mcp.SamplingCapability) *mcp.SamplingCapability {
	if c == nil || want == nil {
		return want
	}
	var missing mcp.SamplingCapability
	if c.Tools == nil {
		missing.Tools = want.Tools
	}
	if c.Context == nil {
		missing.Context = want.Context
	}
	if missing == (mcp.SamplingCapability{}) {
		return nil
	}
	return &missing
}

// missingElicitation returns the part of want that c lacks, or nil.
func missingElicitation(c, want *mcp.ElicitationCapability) *mcp.ElicitationCapability {
	if c == nil || want == nil {
		return want
	}
	var missing mcp.ElicitationCapability
	if c.URL != nil && c.Form == nil { // such a client does not support forms
		missing.Form = want.Form
		if want.URL == nil {
			return want
		}
	}
	if c.URL == nil {
		missing.URL = want.URL
	}
	if missing == (mcp.ElicitationCapability{}) {
		return nil
	}
	return &missing
}

// MissingCapability returns the protocol error for modern clients. Its message says in words what
// the client lacks, because most clients show their users the message alone.
func MissingCapability(e *mcp.CapabilityError) *mcp.Error {
	p := mcp.Errorf(mcp.CodeMissingCapability, "Missing required client capability: %v", e)
	p.Data, _ = json.Marshal(struct {
		Required mcp.ClientCapabilities `json:"requiredCapabilities"`
	}{e.Required})
	return p
}
