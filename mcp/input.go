package mcp

import "encoding/json"

// ResultType is the type of a result. Extensions can add types.
type ResultType string

const (
	ResultComplete      ResultType = "complete"
	ResultInputRequired ResultType = "input_required"
)

// InputRequest is a question to the client: an elicitation, a sampling request, a request for
// roots, or a method of an extension.
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
}

// InputRequiredResult asks the client for input (basic/patterns/mrtr). At least one of
// InputRequests and RequestState is present.
type InputRequiredResult struct {
	Meta          Meta                    `json:"_meta,omitempty"`
	InputRequests map[string]InputRequest `json:"inputRequests,omitempty"`
	RequestState  *string                 `json:"requestState,omitzero"`
}

// InputResponseParams is the part of a request's parameters that answers an [InputRequiredResult].
type InputResponseParams struct {
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   *string                    `json:"requestState,omitzero"`
}
