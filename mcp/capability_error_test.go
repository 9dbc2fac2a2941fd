package mcp

import (
	"encoding/json"
	"testing"
)

// The error tells a person, not a program, what the client lacks.
func TestCapabilityErrorWords(t *testing.T) {
	t.Parallel()
	for want, required := range map[string]ClientCapabilities{
		"the client does not support questions to the user (elicitation)":                                               {Elicitation: &ElicitationCapability{}},
		"the client does not support pages that the user should open (elicitation of URLs)":                             {Elicitation: &ElicitationCapability{URL: &struct{}{}}},
		"the client does not support requests to its model (sampling with tools) and questions for its folders (roots)": {Sampling: &SamplingCapability{Tools: &struct{}{}}, Roots: &RootsCapability{}},
		"the client does not support the extension x/y":                                                                 {Extensions: map[string]json.RawMessage{"x/y": json.RawMessage(`{}`)}},
		"the client does not support something that this request needs":                                                 {},
	} {
		if got := (&CapabilityError{Required: required}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
